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
 * Brings the database and the Temporal namespace to this version, and makes the first user. Safe to run again at each
 * start. After an unclean end, what was stored last is to be looked at.
 */
export async function prepareInstallation(
  config: Config,
  { wasUnclean = false, ...waiting }: { report: Report; signal: AbortSignal; wasUnclean?: boolean | undefined },
): Promise<{ user: { email: string } }> {
  await Promise.all([migrateInstallation(config), registerWhenServed(config, waiting)]);
  const database = openDatabase(config);
  try {
    // The sweeper looks at them. Whoever is first to read one of them whole does so too.
    if (wasUnclean) await createContentFindings(database).suspectLatest();
    const identity = createIdentity(database, await openEnvelope(database, config), config);
    return { user: await seedFirstUser(identity) };
  } finally {
    await database.close();
  }
}

/** The first user, with a space of their own. The next start completes one that was killed in between. */
async function seedFirstUser(identity: Identity): Promise<{ email: string }> {
  const user = (await identity.users.first()) ?? (await identity.users.add(firstUserEmail, 'Admin'));
  if (user.email === firstUserEmail && user.defaultSpaceId === null) {
    await identity.spaces.create(user.id, firstSpaceName);
  }
  return user;
}
