import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { createTenantServer, type TenantServer } from '../../../integrations/databases/tenantServer.ts';
import { namesOf } from '../../../models/databases/names.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { backupTaskQueue, longDatabaseTaskQueue, mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { actorWorkflowId, databaseBackupWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { databasesOf, enter } from '../../builders/databases.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let server: TenantServer;
let user: ChatUser;
let own: ReturnType<typeof databasesOf>;
beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ...(await tenantServer()),
    ATRIUM_DATABASES_PER_SPACE: '20',
    ATRIUM_DATABASE_BACKUPS_KEPT: '2',
  });
  const { url = '', adminPort, ...limits } = product.environment.config.databases;
  server = createTenantServer({ url, adminPort }, limits);
  user = await product.user();
  own = databasesOf(user);
});
afterAll(() => product.close());

const query = (sql: string, values: unknown[] = []) => product.environment.database.pool.query(sql, values);

/** A database with one row. */
async function makeFilled(name: string): Promise<string> {
  const { id } = await own.make(name);
  await using connection = await enter(await own.connection(id));
  await connection.query('CREATE TABLE notes (words VARCHAR(50))');
  await connection.query("INSERT INTO notes VALUES ('as it was')");
  return id;
}

async function wordsIn(id: string): Promise<unknown> {
  await using connection = await enter(await own.connection(id));
  return (await connection.query('SELECT words FROM notes'))[0];
}

async function objectOf(backupId: string): Promise<string> {
  const [rows] = await query('SELECT object_key AS objectKey FROM space_database_backups WHERE id = ?', [backupId]);
  return (rows as { objectKey: string }[])[0]?.objectKey ?? '';
}

const isStored = async (objectKey: string) =>
  (await driveModels(product.environment.database).DriveObject.findByPk(objectKey))?.state === 'kept';

test('A database can be made from a backup of another one', async () => {
  const id = await makeFilled('shop');
  const key = randomUUID();
  const backup = await own.backUp(id, key);
  expect(backup).toMatchObject({ databaseId: id, status: 'kept', createdBy: user.id, errorCode: null });
  expect(backup.sizeBytes).toBeGreaterThan(50);
  expect(await own.backUp(id, key)).toEqual(backup);
  expect(await own.backups(id)).toEqual([backup]);
  {
    await using connection = await enter(await own.connection(id));
    await connection.query("UPDATE notes SET words = 'as it is'");
  }
  const restoring = randomUUID();
  const restored = await own.restoreFrom(id, backup.id, 'shop as it was', restoring);
  expect(restored).toMatchObject({ name: 'shop as it was', status: 'ready', appIds: [] });
  expect(await own.restoreFrom(id, backup.id, 'shop as it was', restoring)).toMatchObject({ id: restored.id });
  expect(await wordsIn(restored.id)).toEqual([{ words: 'as it was' }]);
  expect(await wordsIn(id)).toEqual([{ words: 'as it is' }]);
});

test('Items that a backup leaves out, or that the server refuses, are named', async () => {
  const id = await makeFilled('partly broken');
  {
    await using connection = await enter(await own.connection(id));
    for (const sql of [
      'CREATE TABLE gone (id INT)',
      'CREATE VIEW of_nothing AS SELECT id FROM gone',
      'ALTER TABLE notes ADD COLUMN more INT',
      'CREATE TRIGGER stale BEFORE INSERT ON notes FOR EACH ROW SET NEW.more = 1',
      'ALTER TABLE notes DROP COLUMN more',
      'DROP TABLE gone',
      'CREATE TABLE empty (id INT)',
      'ALTER TABLE empty DISCARD TABLESPACE',
    ]) {
      await connection.query(sql);
    }
  }
  const backup = await own.backUp(id);
  const { id: restoredId } = await own.restoreFrom(id, backup.id, 'partly restored');
  const restored = await own.get(restoredId);
  const named = [...backup.leftOut.items, ...restored.leftOut.items];
  expect(named).toContainEqual({ kind: 'view', name: 'of_nothing' });
  expect(named).toContainEqual({ kind: 'trigger', name: 'stale' });
  expect(named).toContainEqual({ kind: 'table', name: 'empty' });
  expect(backup.leftOut.count + restored.leftOut.count).toBe(3);
  expect((await own.get(id)).leftOut).toEqual({ count: 0, items: [] });
  await own.compact(restoredId);
  expect((await own.get(restoredId)).leftOut).toEqual(restored.leftOut);
});

test('A deleted database keeps its backups until it is purged', async () => {
  const id = await makeFilled('deleted');
  const { id: backupId } = await own.backUp(id);
  const objectKey = await objectOf(backupId);
  await own.remove(id);
  expect(await own.refusal('POST', `/${id}/backups`)).toEqual([409, 'DATABASE_DELETED']);
  expect(await wordsIn((await own.restoreFrom(id, backupId, 'undeleted')).id)).toEqual([{ words: 'as it was' }]);
  expect(await isStored(objectKey)).toBe(true);
  await own.purge(id);
  expect(await own.refusal('GET', `/${id}/backups`)).toEqual([404, 'NOT_FOUND']);
  await waitFor('the backup to be gone', async () => {
    const [rows] = await query('SELECT 1 FROM space_database_backups WHERE id = ?', [backupId]);
    return (rows as unknown[]).length === 0 && !(await isStored(objectKey));
  });
});

test('A database that is restored after its backup was due is backed up again', async () => {
  const id = await makeFilled('again');
  await own.remove(id);
  // Its backup becomes due while the database is deleted.
  await query('UPDATE space_databases SET backup_at = ? WHERE id = ?', [new Date(0), id]);
  await waitFor('the sweeper to see it', async () => {
    const [rows] = await query('SELECT backup_at AS at FROM space_databases WHERE id = ?', [id]);
    return (rows as { at: Date | null }[])[0]?.at === null;
  });
  await own.restore(id);
  await waitFor('a backup', async () => (await own.backups(id)).some(({ status }) => status === 'kept'));
});

test('A backup stays until the database that is made from it is ready', async () => {
  const [id, other] = [await makeFilled('source'), await makeFilled('other')];
  const { id: backupId } = await own.backUp(id);
  const objectKey = await objectOf(backupId);
  await own.remove(id);
  // As while a database is being made from it.
  await query('UPDATE space_databases SET restores = ?, is_made = 0 WHERE id = ?', [backupId, other]);
  expect(await own.refusal('POST', `/${id}/purge`)).toEqual([409, 'BACKUP_IN_USE']);
  // The time until the purge is over.
  await query('UPDATE space_databases SET purge_at = ?, due_at = ? WHERE id = ?', [new Date(0), new Date(0), id]);
  await waitFor('the database to be gone', async () => (await own.refusal('GET', `/${id}`))[0] === 404);
  expect(await isStored(objectKey)).toBe(true);
  await query('UPDATE space_databases SET due_at = ? WHERE id = ?', [new Date(0), other]);
  await waitFor('the other database to be made', async () => (await own.get(other)).status === 'ready');
  expect(await wordsIn(other)).toEqual([{ words: 'as it was' }]);
  await waitFor('the backup to be gone', async () => !(await isStored(objectKey)));
});

test('Only the newest backups are kept, and deleted ones are removed from the store', async () => {
  const { id } = await own.make('often');
  const first = await own.backUp(id);
  const objectKey = await objectOf(first.id);
  const [second, third] = [await own.backUp(id), await own.backUp(id)];
  expect((await own.backups(id)).map((one) => one.id)).toEqual([third.id, second.id]);
  await waitFor('the first backup to be gone', async () => !(await isStored(objectKey)));
  await own.send('DELETE', `/${id}/backups/${third.id}`);
  expect((await own.backups(id)).map((one) => one.id)).toEqual([second.id]);
  expect(await own.refusal('DELETE', `/${id}/backups/${third.id}`)).toEqual([404, 'NOT_FOUND']);
  expect(await own.refusal('POST', `/${id}/backups/${third.id}/restore`, { name: 'x' })).toEqual([404, 'NOT_FOUND']);
});

test('A backup that is due is made by itself', async () => {
  const id = await makeFilled('regular');
  await query('UPDATE space_databases SET backup_at = ? WHERE id = ?', [new Date(0), id]);
  await waitFor('a backup', async () => (await own.backups(id)).some(({ status }) => status === 'kept'));
  expect(await own.backups(id)).toMatchObject([{ createdBy: null, status: 'kept' }]);
  const [rows] = await query('SELECT backup_at > NOW(3) AS isLater FROM space_databases WHERE id = ?', [id]);
  expect(rows).toEqual([{ isLater: 1 }]);
});

test('The sweeper makes a backup that was forgotten', async () => {
  const id = await makeFilled('forgotten');
  const row = { id: `dbb_${randomUUID()}`, space_id: user.spaceId, database_id: id, state: 'making' };
  await query('INSERT INTO space_database_backups SET ?', [{ ...row, due_at: new Date(0), created_at: new Date(0) }]);
  expect(await own.refusal('POST', `/${id}/backups`)).toEqual([409, 'BACKUP_UNDER_WAY']);
  expect((await own.refusal('DELETE', `/${id}/backups/${row.id}`))[0]).toBe(409);
  await waitFor('the backup to be made', async () => (await own.backups(id))[0]?.status === 'kept');
});

test('A backup fails with QUOTA_EXCEEDED when the drive is full', async () => {
  const crowded = await product.user();
  const theirs = databasesOf(crowded);
  const { id } = await theirs.make('crowded');
  const { quotaBytes } = product.environment.config.drive;
  await crowded.fetch(`/api/spaces/${crowded.spaceId}/drive`);
  await query(
    `INSERT INTO drives (space_id, used_bytes) VALUES (?, ?) ON DUPLICATE KEY UPDATE used_bytes = VALUES(used_bytes)`,
    [crowded.spaceId, quotaBytes],
  );
  expect(await theirs.backUp(id)).toMatchObject({ status: 'failed', errorCode: 'QUOTA_EXCEEDED', sizeBytes: null });
});

test('A backup fails with the name of the table when a row is too large', async () => {
  const { id } = await own.make('wide');
  await using connection = await enter(await own.connection(id));
  await connection.query('CREATE TABLE files (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, c LONGBLOB)');
  await connection.query("INSERT INTO files VALUES (1, '', '', '')");
  for (const column of ['a', 'b', 'c']) await connection.query(`UPDATE files SET ${column} = REPEAT('x', 12000000)`);
  const backup = await own.backUp(id);
  expect(backup).toMatchObject({ status: 'failed', errorCode: 'ROW_TOO_LARGE' });
  expect(backup.errorDetail).toContain('"files"');
});

test('Backups and restores have task queues of their own, and hold up nothing else', async () => {
  const id = await makeFilled('long');
  const { id: backupId } = await own.backUp(id);
  const { id: restoredId } = await own.restoreFrom(id, backupId, 'long again');
  const { installation, temporal } = product.environment.config;
  const connection = await Connection.connect({ address: temporal.address });
  try {
    const client = new Client({ connection, namespace: temporal.namespace });
    const queuesOf = async (workflowId: string) => {
      const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
      return (events ?? []).flatMap((one) => one.activityTaskScheduledEventAttributes?.taskQueue?.name ?? []);
    };
    expect(await queuesOf(databaseBackupWorkflowId(backupId))).toEqual([backupTaskQueue(installation)]);
    const queues = [mainTaskQueue(installation), longDatabaseTaskQueue(installation)];
    expect((await queuesOf(actorWorkflowId('spaceDatabase', restoredId))).slice(0, 2)).toEqual(queues);
  } finally {
    await connection.close();
  }
});

test('A restore from a backup that the store has lost fails and leaves nothing', async () => {
  const id = await makeFilled('refused');
  const backup = await own.backUp(id);
  const before = await server.find(namesOf(product.environment.config.installation));
  await query('UPDATE space_database_backups SET object_key = ? WHERE id = ?', ['nowhere', backup.id]);
  const path = `/${id}/backups/${backup.id}/restore`;
  expect(await own.refusal('POST', path, { name: 'from nothing' })).toEqual([422, 'DATABASE_RESTORE_FAILED']);
  await waitFor('nothing to be left', async () => {
    const after = await server.find(namesOf(product.environment.config.installation));
    return after.databases.length === before.databases.length && after.users.length === before.users.length;
  });
  // The name is free.
  await own.make('from nothing');
});

test('Backups of other spaces and databases, taken names and bad input are refused', async () => {
  const id = await makeFilled('bad input');
  const { id: backupId } = await own.backUp(id);
  const other = await product.user();
  for (const [method, path, body] of [
    ['GET', `/${id}/backups`, undefined],
    ['POST', `/${id}/backups`, undefined],
    ['DELETE', `/${id}/backups/${backupId}`, undefined],
    ['POST', `/${id}/backups/${backupId}/restore`, { name: 'mine' }],
  ] as const) {
    expect([path, await databasesOf(other).refusal(method, path, body)]).toEqual([path, [404, 'NOT_FOUND']]);
  }
  const { id: another } = await own.make('another');
  const path = `/${another}/backups/${backupId}`;
  expect(await own.refusal('POST', `${path}/restore`, { name: 'x' })).toEqual([404, 'NOT_FOUND']);
  expect(await own.refusal('DELETE', path)).toEqual([404, 'NOT_FOUND']);
  const restore = `/${id}/backups/${backupId}/restore`;
  expect(await own.refusal('POST', restore, { name: 'another' })).toEqual([409, 'DATABASE_NAME_TAKEN']);
  expect(await own.refusal('POST', restore, {})).toEqual([400, 'INVALID_REQUEST']);
});
