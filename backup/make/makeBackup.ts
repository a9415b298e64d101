import { counted } from '../../base/text.ts';
import type { Config } from '../../config/index.ts';
import { createTenantServer } from '../../integrations/databases/tenantServer.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { hostsInUse } from '../../models/computers/removedHosts.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';
import { createSpaceDatabases } from '../../models/databases/index.ts';
import { createContentFindings } from '../../models/drive/findings.ts';
import { openEnvelope } from '../../models/identity/index.ts';
import { holdForBackup } from '../../models/installation/backupHold.ts';
import { assertKnownSchema, schemaOf, withSchemaHeld } from '../../models/migrations/migrate.ts';
import { describeBytes } from '../describeBytes.ts';
import { BackupError } from '../errors.ts';
import { Pace, type Watch } from '../pace.ts';
import { listBackups, type Manifest, type NamedManifest, readManifest, writeManifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';
import { storeDatabase } from './databasePart.ts';
import { storeHomes } from './homesPart.ts';
import { readKeys } from './keysPart.ts';
import { storeObjects } from './objectsPart.ts';
import { Progress } from './progress.ts';
import { prune } from './prune.ts';
import { storeTenants } from './tenantsPart.ts';

interface Options {
  vault: Vault;
  config: Config;
  /** How many backups to keep, including this one. Undefined keeps all. */
  keep?: number | undefined;
  report: (line: string) => void;
  watch?: Watch | undefined;
  signal: AbortSignal;
}

export interface MadeBackup {
  manifest: NamedManifest;
  removedBackups: string[];
}

/**
 * Makes a backup of everything while Atrium runs. The database comes first, as of one moment, then the contents that
 * its rows name. From before that moment on nothing is removed from the bucket, so all objects are still there. A
 * killed attempt leaves no backup, and the next one reuses what it copied. Throws 409 `BACKUP_UNDER_WAY` while another
 * runs, {@link BackupError}, and errors of the parts that it reads.
 */
export async function makeBackup(options: Options): Promise<MadeBackup> {
  await using database = openDatabase(options.config);
  await using hold = await holdForBackup(database);
  const signal = AbortSignal.any([options.signal, hold.signal]);
  return await makeHeld({ ...options, signal }, database, hold.assertHeld);
}

async function makeHeld(
  { vault, config, keep, report, watch, signal }: Options,
  database: Database,
  assertHeld: () => Promise<void>,
): Promise<MadeBackup> {
  const { installation, migrations } = await describeSchema(database, config);
  const before = await lastBackup(vault, report);
  if (before !== undefined && before.installation !== installation) {
    throw new BackupError(
      `${vault.place.title} has the backups of another installation. Give this one a folder or a prefix of its own.`,
    );
  }
  await vault.look();
  const pace = new Pace(watch);
  const at = new Date().toISOString();
  const { content, server } = await withSchemaHeld(database, () =>
    storeDatabase({ vault, pace, signal }, config.migration.databaseUrl ?? config.database.url),
  );
  report(`Database: ${describeBytes(content.bytes)}`);
  const keys = await readKeys(config);
  const { tenants, gaps } = await tenantsOf({ vault, config, database, signal });
  if (config.databases.url !== undefined) report(`Databases of spaces: ${tenants.length}`);
  const homes = await storeHomes({ vault, dir: config.computers.dir, signal });
  gaps.push(...homes.gaps, ...(await otherHosts({ database, config }, homes.homes?.hostId)));
  if (homes.homes !== null) report(`Homes of computers: ${homes.homes.computers.length}`);
  const objects = await objectsOf({ vault, config, database, before, pace, signal });
  report(`Objects of the bucket: ${objects.count}, ${describeBytes(objects.bytes)}`);
  const { missing } = objects;
  if (missing.count > 0)
    gaps.push(
      `${counted(missing.count, 'object')} that rows name and the bucket does not have, or not as they were stored`,
    );
  const { seen, damaged } = vault.sample;
  if (seen.size > 0) report(`Pieces that are used again, read to be sure: ${seen.size}, damaged: ${damaged}`);
  if (damaged > 0) report('Damaged pieces were written anew. Look for others: backup verify');
  // If the hold was lost, objects may have been removed before they were copied.
  await assertHeld();
  const manifest = await writeManifest(vault, {
    at,
    finishedAt: new Date().toISOString(),
    installation,
    migrations,
    server,
    database: content,
    objects: objects.content,
    objectCount: objects.count,
    objectBytes: objects.bytes,
    tenants,
    homes: homes.homes,
    ...keys,
    gaps,
    missing,
    newBytes: vault.counts.newBytes,
  });
  await Progress.forget(vault);
  const removedBackups = keep === undefined ? [] : await prune(vault, keep, { signal });
  return { manifest, removedBackups };
}

async function describeSchema(database: Database, config: Config) {
  // A newer version may keep objects in tables that this one does not read.
  await assertKnownSchema(database);
  const { migrations, madeAt } = await schemaOf(database);
  return { migrations, installation: `${config.installation} of ${madeAt}` };
}

async function lastBackup(vault: Vault, report: Options['report']): Promise<NamedManifest | undefined> {
  if ((await listBackups(vault)).length === 0) return undefined;
  try {
    return await readManifest(vault);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    report(`${error.message} Everything is read again.`);
    return undefined;
  }
}

async function tenantsOf(deps: {
  vault: Vault;
  config: Config;
  database: Database;
  signal: AbortSignal;
}): Promise<Pick<Manifest, 'tenants' | 'gaps'>> {
  const { config, database } = deps;
  const { url, adminPort, ...limits } = config.databases;
  if (url === undefined) return { tenants: [], gaps: [] };
  const spaceDatabases = createSpaceDatabases(database, await openEnvelope(database, config), config);
  return storeTenants({ ...deps, spaceDatabases, tenantServer: createTenantServer({ url, adminPort }, limits) });
}

async function objectsOf({
  config,
  ...deps
}: Omit<Parameters<typeof storeObjects>[0], 'storage'> & { config: Config }) {
  // Known damage is reported. A damaged object is not stored as if it were whole.
  const storage = new ObjectStore(config.storage, createContentFindings(deps.database));
  try {
    return await storeObjects({ ...deps, storage });
  } finally {
    storage.close();
  }
}

/** A home is on the machine of its computer. A backup reads only the homes of its own machine. */
async function otherHosts(
  deps: { database: Database; config: Config },
  ownHostId: string | undefined,
): Promise<string[]> {
  const others = (await hostsInUse(deps)).filter(({ id, computers }) => id !== ownHostId && computers > 0);
  return others.map(
    ({ id, computers }) => `${counted(computers, 'home')} of computers on another machine (host ${id})`,
  );
}
