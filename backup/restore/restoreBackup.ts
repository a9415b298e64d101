import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';
import { createTenantServer } from '../../integrations/databases/tenantServer.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';
import { createSpaceDatabases } from '../../models/databases/index.ts';
import { namesOf } from '../../models/databases/names.ts';
import { openEnvelope, rewrapKeys } from '../../models/identity/index.ts';
import { resumeInstallation } from '../../models/installation/installation.ts';
import { areUnreleased, unknownMigrations, withSchemaHeld } from '../../models/migrations/migrate.ts';
import { BackupError, NotEmptyError } from '../errors.ts';
import { Pace, type Watch } from '../pace.ts';
import type { NamedManifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';
import { countTables, loadDatabase } from './databasePart.ts';
import { loadHomes } from './homesPart.ts';
import type { Journal } from './journal.ts';
import { loadObjects } from './objectsPart.ts';
import { settle } from './settle.ts';
import { targetsOf } from './targets.ts';
import { loadTenants } from './tenantsPart.ts';

interface Options {
  vault: Vault;
  manifest: NamedManifest;
  config: Config;
  /** The parts that run in the data directory. */
  need: LaunchConfig['need'];
  journal: Journal;
  report: (line: string) => void;
  watch?: Watch | undefined;
  /** Whether the installation resumes at once, because the original no longer runs. */
  resumes: boolean;
  signal: AbortSignal;
}

/** Throws {@link BackupError} if the backup has schema migrations that this version does not know. */
export function assertKnown({ migrations, id }: NamedManifest): void {
  if (areUnreleased(migrations)) {
    throw new BackupError(
      `The backup ${id} was made by an Atrium from before the first release, whose data this version cannot use.`,
    );
  }
  const [unknown] = unknownMigrations(migrations);
  if (unknown === undefined) return;
  throw new BackupError(
    `The backup ${id} was made by a newer Atrium: this one does not know ${unknown}. Restore it with that version.`,
  );
}

/**
 * Restores a backup into running, empty parts. The master keys are already there. The database's tables come first,
 * then the contents that its rows name. After a killed attempt, the next one goes on. Throws {@link NotEmptyError}
 * before it writes anything.
 */
export async function restoreBackup(options: Options): Promise<{ gaps: string[] }> {
  const { vault, manifest, config, need, journal, report, signal } = options;
  const pace = new Pace(options.watch);
  const ownerUrl = config.migration.databaseUrl ?? config.database.url;
  await using database = openDatabase({ database: { ...config.database, url: ownerUrl } });
  const storage = new ObjectStore(config.storage);
  try {
    const { isResumed } = journal;
    const targets = targetsOf(config, need);
    if (isResumed) {
      journal.assertSame(targets);
    } else {
      await assertEmpty(config, ownerUrl, storage);
      journal.noteEmpty(targets);
    }
    if (!journal.isDatabaseDone()) {
      await withSchemaHeld(database, async () => {
        await loadDatabase({ vault, pace, signal }, manifest, ownerUrl);
        await rewrapKeys(database, config);
        await settle({ database, config }, manifest);
      });
      journal.noteDatabase();
    }
    report('Database restored');
    await loadObjects(manifest, { vault, storage, isResumed, pace, signal });
    report(`Objects of the bucket restored: ${manifest.objectCount}`);
    const refused = await tenantsOf(options, database);
    const homeGaps = await loadHomes(manifest, { vault, config, database, signal });
    if (manifest.homes !== null) {
      report(`Homes of computers restored: ${manifest.homes.computers.length - homeGaps.length}`);
    }
    if (options.resumes) await resumeInstallation(database);
    const made = refused.map((id) => `the database ${id}, which is made from its newest own backup at the start`);
    return { gaps: [...manifest.gaps, ...made, ...homeGaps] };
  } finally {
    storage.close();
  }
}

async function tenantsOf({ vault, manifest, config, report, signal }: Options, database: Database): Promise<string[]> {
  const { url, adminPort, ...limits } = config.databases;
  if (manifest.tenants.length === 0) return [];
  if (url === undefined) {
    throw new BackupError('The backup has databases of spaces: set ATRIUM_TENANT_DATABASE_URL to a server for them.');
  }
  const refused = await loadTenants(manifest, {
    vault,
    database,
    spaceDatabases: createSpaceDatabases(database, await openEnvelope(database, config), config),
    tenantServer: createTenantServer({ url, adminPort }, limits),
    signal,
  });
  report(`Databases of spaces restored: ${manifest.tenants.length - refused.length}`);
  return refused;
}

/** A restore never overwrites. An operator who wants that must empty the parts first. */
async function assertEmpty(config: Config, ownerUrl: string, storage: ObjectStore): Promise<void> {
  const tables = await countTables(ownerUrl);
  if (tables > 0) {
    const { pathname, host } = new URL(ownerUrl);
    throw notEmpty(`the database ${pathname.slice(1)} at ${host} has ${tables} tables`);
  }
  const list = new ListObjectsV2Command({ Bucket: storage.bucket, MaxKeys: 1 });
  if ((await storage.client.send(list)).KeyCount !== 0) throw notEmpty(`the bucket ${storage.bucket} has objects`);
  const { url, adminPort, ...limits } = config.databases;
  if (url === undefined) return;
  const found = await createTenantServer({ url, adminPort }, limits).find(namesOf(config.installation));
  if (found.databases.length > 0) throw notEmpty('the server for databases of spaces has some of this installation');
}

function notEmpty(what: string): NotEmptyError {
  return new NotEmptyError(
    `A backup is restored into an empty installation, and ${what}. Nothing was changed. Give it other places, or empty these yourself.`,
  );
}
