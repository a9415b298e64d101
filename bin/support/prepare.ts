import type { Config } from '../../config/index.ts';
import { openDatabase } from '../../models/database/database.ts';
import { createContentFindings } from '../../models/drive/findings.ts';
import { createIdentity, type Identity, openEnvelope } from '../../models/identity/index.ts';
import { migrateInstallation } from '../../models/migrations/migrate.ts';
import type { Report } from '../../stack/report.ts';
import { registerWhenServed } from './temporal.ts';

/** Not a real address: this user signs in with `atrium token` or `atrium code`. */
const firstUserEmail = 'admin@localhost';
const firstSpaceName = 'Home';

/**
 * Brings the database and the Temporal namespace to this version, and makes the first user. Safe to run at each start.
 * After an unclean end, marks the objects stored last as suspect.
 */
export async function prepareInstallation(
  config: Config,
  { wasUnclean = false, ...waiting }: { report: Report; signal: AbortSignal; wasUnclean?: boolean | undefined },
): Promise<{ user: { email: string } }> {
  await Promise.all([migrateInstallation(config), registerWhenServed(config, waiting)]);
  await using database = openDatabase(config);
  // The sweeper checks suspect objects. So does the first reader that reads one whole.
  if (wasUnclean) await createContentFindings(database).suspectLatest();
  const identity = createIdentity(database, await openEnvelope(database, config), config);
  return { user: await seedFirstUser(identity) };
}

/** Makes the first user, with a space of their own. If that is interrupted, the next start completes it. */
async function seedFirstUser(identity: Identity): Promise<{ email: string }> {
  const user = (await identity.users.first()) ?? (await identity.users.add(firstUserEmail, 'Admin'));
  if (user.email === firstUserEmail && user.defaultSpaceId === null) {
    await identity.spaces.create(user.id, firstSpaceName);
  }
  return user;
}
