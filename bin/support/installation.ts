import { assertNoRestore } from '../../backup/restore/journal.ts';
import { type Config, ConfigError, loadConfig } from '../../config/index.ts';
import { loadLaunchConfig } from '../../config/launch.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';
import { createIdentity, type Identity, openEnvelope } from '../../models/identity/index.ts';
import { assertKnownSchema } from '../../models/migrations/migrate.ts';
import { commandLine } from './commandLine.ts';
import { CommandFailure } from './failure.ts';
import { findRunning } from './running.ts';

/** The configuration of a command: the environment, and the parts that a running `atrium up` started. */
export function loadCommandConfig(): Config {
  const launch = loadLaunchConfig();
  assertNoRestore(launch.dataDir);
  const running = findRunning(launch.dataDir);
  try {
    return loadConfig({ ...running?.environment, ...launch.environment });
  } catch (error) {
    const isNeeded = Object.values(launch.need).some((needed) => needed);
    if (!(error instanceof ConfigError) || !isNeeded) throw error;
    if (running?.state === 'starting') {
      throw new CommandFailure('Atrium is still starting here. Try again once it is ready.');
    }
    if (running !== undefined) throw error;
    throw notRunning('set the addresses of its parts');
  }
}

/** What to say where no Atrium runs with this data directory. `otherwise` is a further way out. */
export function notRunning(otherwise?: string): CommandFailure {
  const { dataDir } = loadLaunchConfig();
  const more = otherwise === undefined ? '' : `, or ${otherwise}`;
  return new CommandFailure(
    `Atrium does not run here, with data in ${dataDir}. Start it with "npm start", or set ATRIUM_DATA_DIR if its data are elsewhere${more}.`,
  );
}

export async function withDatabase<T>(work: (database: Database, config: Config) => Promise<T>): Promise<T> {
  const config = loadCommandConfig();
  await using database = openDatabase(config);
  await assertKnownSchema(database);
  return await work(database, config);
}

export async function withIdentity<T>(work: (identity: Identity, database: Database) => Promise<T>): Promise<T> {
  return withDatabase(async (database, config) =>
    work(createIdentity(database, await openEnvelope(database, config), config), database),
  );
}

/** The active user with this address. Without an address, the first user, whom `npm start` made. */
export async function findActiveUser(identity: Identity, email: string | undefined) {
  const user = await findUser(identity, email);
  if (user.disabledAt === null) return user;
  throw new CommandFailure(`${user.email} is disabled: ${commandLine} user enable ${user.email}`);
}

/** Like {@link findActiveUser}, but includes disabled users. */
export async function findUser(identity: Identity, email: string | undefined) {
  const user = email === undefined ? await identity.users.first() : await identity.users.byEmail(email);
  if (user !== undefined) return user;
  throw new CommandFailure(
    email === undefined
      ? `There is no user yet. Add one: ${commandLine} user add EMAIL`
      : `There is no user ${email}. Add one: ${commandLine} user add ${email}`,
  );
}
