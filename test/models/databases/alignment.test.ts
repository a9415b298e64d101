import { newId } from '../../../base/ids.ts';
import { beginFill, failRestore, finishAlignment, giveUpAlignment } from '../../../models/databases/alignment.ts';
import { createSpaceDatabases, type SpaceDatabases } from '../../../models/databases/index.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The rows of databases. No tenant server is asked.

let environment: TestEnvironment;
let databases: SpaceDatabases;
let spaceId: string;
let userId: string;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  databases = createSpaceDatabases(database, await openEnvelope(database, config), config);
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  userId = user.id;
  spaceId = (await buildSpace(identity, user.id)).space.id;
});
afterAll(() => environment.close());

const query = (sql: string, values: unknown[] = []) => environment.database.pool.query(sql, values);

/** A new database row, with the arguments that its wishes need. */
async function make() {
  const actor = { userId, credentialId: null, address: null };
  const asked = { spaceId, id: newId('spaceDatabase'), actor };
  await databases.wishes.make({ ...asked, name: asked.id }, actor);
  return asked;
}

test("The space's own account is the one without an app, even if an app's account has the first id", async () => {
  const asked = await make();
  await query('UPDATE space_databases SET is_made = 1 WHERE id = ?', [asked.id]);
  await query(
    `INSERT INTO space_database_accounts (id, database_id, space_id, app_id, item_id, server_user, sealed)
      VALUES ('dba_0', ?, ?, 'app_1', 'itm_1', 'of_the_app', '')`,
    [asked.id, spaceId],
  );
  const before = await databases.connection(asked);
  expect(before.user).not.toBe('of_the_app');
  await databases.wishes.rotate({ ...asked, operationId: newId('operation'), now: false });
  const after = await databases.connection(asked);
  expect(after.user).toBe(before.user);
  expect(after.password).not.toBe(before.password);
});

test('A database is due again when a late worker finishes an older alignment after a newer one', async () => {
  const asked = await make();
  const read = async () => {
    const found = await databases.alignment(asked.id);
    if (found === undefined) throw new Error('It has a row.');
    return found;
  };
  const isDue = async () => {
    const [rows] = await query('SELECT due_at <= ? AS isDue FROM space_databases WHERE id = ?', [new Date(), asked.id]);
    return (rows as { isDue: number }[])[0]?.isDue === 1;
  };
  const late = await read();
  await databases.wishes.remove(asked);
  const newer = await read();
  expect(await finishAlignment(environment.database, newer)).toBe(true);
  expect(await isDue()).toBe(false);
  expect(await finishAlignment(environment.database, late)).toBe(false);
  expect(await isDue()).toBe(true);
  // A worker that still works on the newer alignment does not change that.
  expect(await finishAlignment(environment.database, newer)).toBe(false);
  expect(await finishAlignment(environment.database, await read())).toBe(true);
  expect(await isDue()).toBe(false);
});

test('A password that the server never had does not replace the one before', async () => {
  const asked = await make();
  const read = async () => {
    const found = await databases.alignment(asked.id);
    if (found === undefined) throw new Error('It has a row.');
    return found;
  };
  const first = await read();
  expect(await finishAlignment(environment.database, first)).toBe(true);
  const rotate = () => databases.wishes.rotate({ ...asked, operationId: newId('operation'), now: false });
  await rotate();
  await rotate();
  const [account] = (await read()).accounts;
  expect(account?.previous).toBe(first.accounts[0]?.password);
});

test('A database that is deleted before its backup was restored still restores it after an undelete', async () => {
  const asked = await make();
  await query("UPDATE space_databases SET restores = 'dbb_1' WHERE id = ?", [asked.id]);
  const settle = async () => {
    const wanted = await databases.alignment(asked.id);
    if (wanted === undefined) throw new Error('It has a row.');
    expect(await finishAlignment(environment.database, wanted)).toBe(true);
    return wanted;
  };
  await databases.wishes.remove(asked);
  await settle();
  await databases.wishes.restore(asked);
  expect(await settle()).toMatchObject({ state: 'living', restores: 'dbb_1' });
  const [rows] = await query('SELECT is_made AS isMade, restores FROM space_databases WHERE id = ?', [asked.id]);
  expect(rows).toEqual([{ isMade: 1, restores: null }]);
});

test('A worker that lost a restore to another worker can no longer report on it', async () => {
  const asked = await make();
  await query("UPDATE space_databases SET restores = 'dbb_1' WHERE id = ?", [asked.id]);
  const { database } = environment;
  const read = async () => {
    const found = await databases.alignment(asked.id);
    if (found === undefined) throw new Error('It has a row.');
    return found;
  };
  const [frozen, frozenBefore, newer] = [await read(), await read(), await read()];
  const former = await beginFill(database, frozen, 'd');
  await expect(beginFill(database, newer, 'd')).rejects.toMatchObject({ code: 'DATABASE_TAKEN_OVER' });
  const next = await read();
  expect(await beginFill(database, next, 'd')).not.toBe(former);
  const failure = { code: 'X', detail: 'x' };
  for (const late of [frozen, frozenBefore]) {
    await expect(finishAlignment(database, late)).rejects.toMatchObject({ code: 'DATABASE_TAKEN_OVER' });
    expect(await failRestore(database, late, failure)).toBe(false);
  }
  expect(await read()).toMatchObject({ state: 'living', restores: 'dbb_1', serverName: next.serverName });
  // A wish made meanwhile does not fill the database again.
  await databases.wishes.rotate({ ...asked, operationId: newId('operation'), now: false });
  expect(await finishAlignment(database, next)).toBe(false);
  expect(await read()).toMatchObject({ restores: null });
  expect(await finishAlignment(database, await read())).toBe(true);
});

test('A change during a compaction causes no second compaction', async () => {
  const asked = await make();
  const { database } = environment;
  const read = async () => {
    const found = await databases.alignment(asked.id);
    if (found === undefined) throw new Error('It has a row.');
    return found;
  };
  await databases.wishes.compact(asked);
  const compacted = await read();
  expect(compacted.compacts).toBeGreaterThan(0);
  // The database has become full meanwhile, because its tables exist twice while they are rewritten.
  await query('UPDATE space_databases SET is_full = 1, version = version + 1 WHERE id = ?', [asked.id]);
  expect(await finishAlignment(database, compacted)).toBe(false);
  expect(await read()).toMatchObject({ compacts: 0, isFull: true });
  // A compaction that is asked for after this one has begun is still done.
  await databases.wishes.compact(asked);
  const again = await read();
  await databases.wishes.compact(asked);
  expect(await finishAlignment(database, again)).toBe(false);
  expect((await read()).compacts).toBeGreaterThan(again.compacts);
});

test('A failure that is recorded late fails only what waited when it happened', async () => {
  const asked = await make();
  const operations = async () => {
    const sql = 'SELECT status, error_code FROM operations WHERE subject_id = ? ORDER BY created_at';
    return (await query(sql, [asked.id]))[0];
  };
  const early = new Date(Date.now() - 60_000);
  await query('UPDATE operations SET created_at = ? WHERE subject_id = ?', [early, asked.id]);
  await query('UPDATE space_databases SET is_made = 1, compacts = 3 WHERE id = ?', [asked.id]);
  await databases.wishes.rotate({ ...asked, operationId: newId('operation'), now: false });
  const failure = { code: 'DATABASE_SERVER_UNAVAILABLE', detail: '' };
  await giveUpAlignment(environment.database, asked.id, failure, new Date(early.getTime() + 1_000));
  const failed = { status: 'failed', error_code: failure.code };
  expect(await operations()).toEqual([failed, { status: 'running', error_code: null }]);
  expect(await databases.alignment(asked.id)).toMatchObject({ compacts: 3 });
  await giveUpAlignment(environment.database, asked.id, failure);
  expect(await operations()).toEqual([failed, failed]);
  expect(await databases.alignment(asked.id)).toMatchObject({ compacts: 0 });
});
