import { randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { readManifest, writeManifest } from '../../backup/vault/manifests.ts';
import { openVault } from '../../backup/vault/openVault.ts';
import type { Environment } from '../../config/index.ts';
import { reconcileScheduleId, sweeperScheduleId } from '../../temporal/workflowIds.ts';
import { asUser } from '../builders/chat.ts';
import { databasesOf, enter } from '../builders/databases.ts';
import { buildBucket } from '../builders/drive.ts';
import { putFile } from '../builders/files.ts';
import { buildIdentity } from '../builders/identity.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { runAtrium, startAtrium } from '../support/atrium.ts';
import {
  createEmptyDatabase,
  openTestEnvironment,
  runStatement,
  type TestEnvironment,
} from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/processes.ts';
import { startProduct } from '../support/product.ts';
import { tenantServer } from '../support/runServer.ts';
import { waitFor } from '../support/waitFor.ts';

// Backups of an installation whose database (MariaDB or MySQL) and object store are the operator's own servers.

const fileCount = 30;

let product: TestProduct;
let environment: Environment;
let place: string;
beforeAll(async () => {
  const bucket = await buildBucket();
  bucket.client.destroy();
  const folder = temporaryFolder();
  place = join(folder, 'backups');
  const key = join(folder, 'key');
  writeFileSync(key, 'correct horse battery staple', { mode: 0o600 });
  product = await buildProduct({ ...(await tenantServer()), ATRIUM_S3_BUCKET: bucket.name });
  environment = {
    ...product.environment.environment,
    ATRIUM_LOG_LEVEL: undefined,
    ATRIUM_BACKUP_TO: place,
    ATRIUM_BACKUP_KEY_FILE: key,
  };
});
afterAll(() => product.close());

const run = (args: string[], more: Environment = {}) => runAtrium(args, { ...environment, ...more });

const ofStore = (settings: Environment): Environment => ({
  ATRIUM_BACKUP_S3_ENDPOINT: settings.ATRIUM_S3_ENDPOINT,
  ATRIUM_BACKUP_S3_ACCESS_KEY_ID: settings.ATRIUM_S3_ACCESS_KEY_ID,
  ATRIUM_BACKUP_S3_SECRET_ACCESS_KEY: settings.ATRIUM_S3_SECRET_ACCESS_KEY,
});

/** The settings of an empty database and an empty bucket. */
async function elsewhere(): Promise<{ settings: Environment }> {
  const empty = await createEmptyDatabase();
  const bucket = await buildBucket();
  bucket.client.destroy();
  const settings = {
    ATRIUM_DATABASE_URL: empty.url,
    ATRIUM_DATABASE_MIGRATION_URL: empty.ownerUrl,
    ATRIUM_S3_BUCKET: bucket.name,
    ATRIUM_DATA_DIR: temporaryFolder(),
  };
  return { settings };
}

/** Removes the schedules of the lost installation, since the restored one uses the same Temporal namespace. */
async function removeSchedules({ config }: TestEnvironment): Promise<void> {
  const connection = await Connection.connect({ address: config.temporal.address });
  const { schedule } = new Client({ connection, namespace: config.temporal.namespace });
  for (const idOf of [sweeperScheduleId, reconcileScheduleId]) {
    await schedule.getHandle(idOf(config.installation)).delete();
  }
  await connection.close();
}

test('a killed backup is not listed and the next one completes; a restore to other servers has all data', async () => {
  const user = await product.user();
  const contents = new Map<string, string>();
  for (let number = 0; number < fileCount; number++) {
    const text = randomBytes(150_000).toString('hex');
    contents.set(`${number}.txt`, text);
    await putFile(product, user, `${number}.txt`, text);
  }
  const databases = databasesOf(user);
  const { id } = await databases.make('shop');
  await waitFor('the database', async () => (await databases.get(id)).status === 'ready');
  {
    await using client = await enter(await databases.connection(id));
    await client.query("CREATE TABLE goods AS SELECT 'tea' AS name");
  }

  for (const to of [
    `s3://${environment.ATRIUM_S3_BUCKET}/backups`,
    join(environment.ATRIUM_DATA_DIR ?? '', 'backups'),
  ]) {
    const more = { ATRIUM_BACKUP_TO: to, ...ofStore(environment) };
    expect((await run(['backup'], more)).output).toMatch(/would be lost with it\. Give /);
  }

  const killed = startAtrium(['backup'], environment);
  await killed.printed(/Databases of spaces/);
  const pieces = () =>
    readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => /pieces.{4}/.test(name));
  const begun = pieces().length;
  await until(() => pieces().length > begun + 3);
  killed.child.kill('SIGKILL');
  await killed.exited;
  expect(JSON.parse((await run(['backup', 'list', '--json'])).stdout)).toEqual([]);
  expect((await run(['backup', 'verify'])).output).toMatch(/^There is no finished backup in /);

  const made = await run(['backup', '--json']);
  expect(made).toMatchObject({ code: 0 });
  expect(JSON.parse(made.stdout)).toMatchObject({ gaps: [] });
  const [listed] = JSON.parse((await run(['backup', 'list', '--json'])).stdout) as { objectCount: number }[];
  expect(listed).toMatchObject({ objectCount: fileCount });

  // A restore to the installation's own servers is refused, since they are not empty. It changes nothing there.
  const ATRIUM_DATA_DIR = temporaryFolder();
  for (let attempt = 0; attempt < 2; attempt++) {
    expect((await run(['restore'], { ATRIUM_DATA_DIR })).output).toMatch(
      /into an empty installation, and the database .* has \d+ tables\. Nothing was changed\./,
    );
    expect(readdirSync(ATRIUM_DATA_DIR)).not.toContain('restore.json');
    expect(readdirSync(ATRIUM_DATA_DIR)).not.toContain('master.key');
  }
  // Lose the space's database.
  const { database: lost } = await databases.connection(id);
  await product.process.kill('SIGKILL');
  await runStatement(environment.ATRIUM_TENANT_DATABASE_URL, `DROP DATABASE ${lost}`);

  const { settings } = await elsewhere();
  // The new installation has another master key. At the end everything is sealed under that one.
  const ATRIUM_MASTER_KEY = randomBytes(32).toString('base64');
  const brokenOff = startAtrium(['restore'], { ...environment, ...settings, ATRIUM_MASTER_KEY });
  await brokenOff.printed(/Database restored/);
  brokenOff.child.kill('SIGKILL');
  await brokenOff.exited;
  // The restore continues only on the servers that it found empty, so the lost installation's database is refused.
  const elsewhereNow = { ATRIUM_DATABASE_MIGRATION_URL: environment.ATRIUM_DATABASE_MIGRATION_URL };
  expect((await run(['restore'], { ...settings, ...elsewhereNow, ATRIUM_MASTER_KEY })).output).toMatch(
    /goes on where it was begun alone: the database was .+, and is .+\. Nothing was changed\./,
  );
  const restored = await run(['restore'], { ...settings, ATRIUM_MASTER_KEY });
  expect(restored).toMatchObject({ code: 0, output: expect.stringMatching(/Databases of spaces restored: 1\n/) });
  expect(readdirSync(settings.ATRIUM_DATA_DIR ?? '')).not.toContain('master.key');
  const other = openTestEnvironment({ ...environment, ...settings, ATRIUM_LOG_LEVEL: 'silent', ATRIUM_MASTER_KEY });
  await removeSchedules(other);
  const process = await startProduct(other);
  const token = await (await buildIdentity(other)).sessions.createByOperator(user.id, 'test');
  const again = asUser({ url: process.apiUrl }, { ...user, token });
  const root = `/api/spaces/${user.spaceId}/drive/items`;
  const { data } = await again.get<{ data: { id: string; name: string }[] }>(`${root}?limit=100`);
  expect(data).toHaveLength(fileCount);
  for (const { id: item, name } of data) {
    expect(await (await again.fetch(`${root}/${item}/content`)).text()).toBe(contents.get(name));
  }
  {
    await using client = await enter(await databasesOf(again).connection(id));
    expect((await client.query('SELECT name FROM goods'))[0]).toEqual([{ name: 'tea' }]);
  }
  await process.stop();
  await other.close();
}, 300_000);

test.each([
  ['a newer version', '9999-later', 'does not know 9999-later'],
  ['a version from before the first release', '0001-identity', 'from before the first release'],
])('a restore refuses a backup by %s', async (_version, step, refusal) => {
  const { ATRIUM_BACKUP_KEY_FILE: keyFile, ATRIUM_BACKUP_TO: to } = environment;
  const vault = await openVault({ to, keyFile, s3: product.environment.config.backup.s3 });
  const { id: _id, ...manifest } = await readManifest(vault);
  const { id } = await writeManifest(vault, { ...manifest, migrations: [...manifest.migrations, step] });
  const { settings } = await elsewhere();
  const refused = await run(['restore', '--backup', id], settings);
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(refusal) });
});
