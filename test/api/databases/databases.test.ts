import { randomUUID } from 'node:crypto';
import { createTenantServer, type TenantServer } from '../../../integrations/databases/tenantServer.ts';
import { namesOf } from '../../../models/databases/names.ts';
import { asUser, type ChatUser } from '../../builders/chat.ts';
import { databasesOf, enter, opens } from '../../builders/databases.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let server: TenantServer;
let user: ChatUser;
let own: ReturnType<typeof databasesOf>;
beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper, ...(await tenantServer()), ATRIUM_DATABASES_PER_SPACE: '20' });
  const { url = '', adminPort, ...limits } = product.environment.config.databases;
  server = createTenantServer({ url, adminPort }, limits);
  user = await product.user();
  own = databasesOf(user);
});
afterAll(() => product.close());

const query = (sql: string, values: unknown[] = []) => product.environment.database.pool.query(sql, values);
const onServer = () => server.find(namesOf(product.environment.config.installation));

async function serverNames(id: string): Promise<{ name: string; user: string }> {
  const [rows] = await query(
    `SELECT d.server_name AS name, a.server_user AS user FROM space_databases d
       JOIN space_database_accounts a ON a.database_id = d.id AND a.purpose IS NULL WHERE d.id = ?`,
    [id],
  );
  return (rows as { name: string; user: string }[])[0] ?? { name: '', user: '' };
}

/** An account as the server is asked to have it, with the password that it has there. */
const accountOf = (user: string) => {
  const passwords = { password: '', previous: undefined, setsPasswords: false };
  return { user, ...passwords, isRevoked: false, isCut: false, onlyReads: false };
};

describe('Making a database', () => {
  test('A new database is empty, and its space gets in', async () => {
    const made = await own.make('shop');
    expect(made).toMatchObject({
      ...{ spaceId: user.spaceId, name: 'shop', status: 'ready', createdBy: user.id, deletedAt: null, purgeAt: null },
    });
    expect(await own.get(made.id)).toEqual(made);
    expect(made).toMatchObject({ sizeBytes: 0, maxSizeBytes: 1_073_741_824, tableCount: 0, isFull: false });
    expect(await own.list()).toContainEqual(made);
    const details = await own.connection(made.id);
    expect(details).toMatchObject({ port: server.port, previousPasswordUntil: null });
    await using connection = await enter(details);
    expect((await connection.query('SHOW TABLES'))[0]).toEqual([]);
    await connection.query('CREATE TABLE notes (id INT)');
  });

  test('One database for each Idempotency-Key, and for each name in a space', async () => {
    const key = randomUUID();
    const [first, again] = [await own.make('once', key), await own.make('once', key)];
    expect(again).toEqual(first);
    expect(await own.refusal('POST', '', { name: 'once' })).toEqual([409, 'DATABASE_NAME_TAKEN']);
    await expect(databasesOf(await product.user()).make('once')).resolves.toMatchObject({ status: 'ready' });
  });

  test('400 for an invalid name, but a name may look like SQL', async () => {
    for (const body of [
      {},
      { name: '' },
      { name: '   ' },
      { name: ' a' },
      { name: 'a\n' },
      { name: 'x'.repeat(101) },
      { name: 'a', more: 1 },
    ]) {
      expect(await own.refusal('POST', '', body)).toEqual([400, 'INVALID_REQUEST']);
    }
    // The server never sees the name, so characters with a meaning in SQL are harmless.
    const odd = "`; DROP DATABASE mysql; -- '%_\\";
    expect(await own.make(odd)).toMatchObject({ name: odd, status: 'ready' });
  });

  test('A space has at most 20 databases', async () => {
    const few = databasesOf(await product.user());
    for (let n = 0; n < 20; n++) {
      await query(
        `INSERT INTO space_databases (id, space_id, name, live_name, server_name, state, created_by, created_at)
          VALUES (?, ?, ?, ?, ?, 'living', 'usr_1', NOW(3))`,
        [`dbs_${randomUUID()}`, few.root.split('/')[3], `n${n}`, `n${n}`, `x${randomUUID().slice(0, 20)}`],
      );
    }
    expect(await few.refusal('POST', '', { name: 'one more' })).toEqual([422, 'TOO_MANY_DATABASES']);
    await query('DELETE FROM space_databases WHERE space_id = ?', [few.root.split('/')[3]]);
  });
});

describe('Access', () => {
  test('404 for another space, and 403 for a viewer who asks for the connection', async () => {
    const { id } = await own.make('private');
    const other = await product.user();
    for (const [method, path] of [
      ['GET', `/${id}`],
      ['GET', `/${id}/connection`],
      ['POST', `/${id}/rotate`],
      ['POST', `/${id}/restore`],
      ['DELETE', `/${id}`],
    ] as const) {
      const elsewhere = databasesOf(other);
      expect([path, await elsewhere.refusal(method, path)]).toEqual([path, [404, 'NOT_FOUND']]);
      expect([path, await own.refusal(method, path, undefined, other)]).toEqual([path, [404, 'NOT_FOUND']]);
    }
    const viewer = await product.user();
    await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
    expect((await viewer.fetch(`${own.root}/${id}`)).status).toBe(200);
    expect(await own.refusal('GET', `/${id}/connection`, undefined, viewer)).toEqual([403, 'ROLE_TOO_LOW']);
  });

  test('403 for a read-only key that asks for the connection', async () => {
    const { id } = await own.make('looked at');
    const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes: ['databases:read'] } });
    const { key } = (await made.json()) as { key: string };
    const bot = asUser(product, { ...user, token: key });
    expect((await bot.fetch(`${own.root}/${id}`)).status).toBe(200);
    expect((await own.refusal('GET', `/${id}/connection`, undefined, bot))[0]).toBe(403);
  });

  test('The account of one database does not lead into another database of the space', async () => {
    const [one, other] = [await own.make('one'), await own.make('other')];
    await using connection = await enter(await own.connection(one.id));
    const { database } = await own.connection(other.id);
    await expect(connection.query(`USE ${database}`)).rejects.toMatchObject({ errno: 1044 });
  });
});

test('No password is in a log or in a row', async () => {
  const { id } = await own.make('sealed');
  const passwords = [(await own.connection(id)).password, (await own.rotate(id, randomUUID())).password];
  const [rows] = await query('SELECT * FROM space_database_accounts WHERE database_id = ?', [id]);
  const [operations] = await query('SELECT * FROM operations WHERE subject_id = ?', [id]);
  const [keys] = await query('SELECT * FROM idempotency_keys');
  const written = JSON.stringify([rows, operations, keys]) + product.process.log();
  expect(written).toContain(id);
  for (const password of passwords) {
    expect(written).not.toContain(password);
    expect(written).not.toContain(Buffer.from(password).toString('base64'));
  }
  expect((rows as { sealed: Buffer }[])[0]?.sealed.includes(passwords[1] ?? '')).toBe(false);
});

describe('a new password', () => {
  test('The new and the previous password are both valid for a while, and older ones are not', async () => {
    const { id } = await own.make('rotated');
    const first = await own.connection(id);
    const second = await own.rotate(id);
    expect(second).toMatchObject({
      user: first.user,
      database: first.database,
      previousPasswordUntil: expect.any(String),
    });
    expect(await own.connection(id)).toEqual(second);
    expect(await Promise.all([first, second].map(opens))).toEqual([true, true]);
    const third = await own.rotate(id);
    expect(await Promise.all([first, second, third].map(opens))).toEqual([false, true, true]);
    await query(`UPDATE space_database_accounts SET previous_until = ? WHERE database_id = ?`, [new Date(0), id]);
    await query('UPDATE space_databases SET due_at = ? WHERE id = ?', [new Date(0), id]);
    await waitFor('the previous password to end', async () => !(await opens(second)));
    expect(await own.connection(id)).toEqual({ ...third, previousPasswordUntil: null });
    expect(await opens(third)).toBe(true);
  });

  test('The same Idempotency-Key makes one new password', async () => {
    const { id } = await own.make('rotated once');
    const key = randomUUID();
    expect(await own.rotate(id, key)).toEqual(await own.rotate(id, key));
  });

  test('With "now", a new password ends the previous one and its connections at once', async () => {
    const { id } = await own.make('left by somebody');
    const before = await own.connection(id);
    await using connection = await enter(before);
    const after = await own.rotate(id, undefined, { now: true });
    expect(after).toMatchObject({ user: before.user, previousPasswordUntil: null });
    await expect(connection.query('SELECT 1')).rejects.toBeDefined();
    expect(await Promise.all([before, after].map(opens))).toEqual([false, true]);
    // Connections are cut only once: one with the new password stays.
    await using later = await enter(after);
    await own.rotate(id);
    expect(await later.query('SELECT 1')).toBeDefined();
  });

  test('A new password repairs an account whose tenant has set a password', async () => {
    const { id } = await own.make('self-made');
    const before = await own.connection(id);
    {
      await using connection = await enter(before);
      await connection
        .query("SET PASSWORD = 'ownSecret1'")
        .catch(() => connection.query("SET PASSWORD = PASSWORD('ownSecret1')"));
    }
    expect(await opens(before)).toBe(false);
    expect(await opens(await own.rotate(id))).toBe(true);
  });
});

describe('Deleting a database', () => {
  test('A deleted database is closed and cuts its connections, and restored it has everything', async () => {
    const { id } = await own.make('dropped');
    const details = await own.connection(id);
    await using connection = await enter(details);
    await connection.query('CREATE TABLE notes (words TEXT)');
    await connection.query("INSERT INTO notes VALUES ('kept')");
    await own.remove(id);
    await expect(connection.query('SELECT 1')).rejects.toBeDefined();
    expect(await opens(details)).toBe(false);
    expect(await own.get(id)).toMatchObject({ status: 'deleted', purgeAt: expect.any(String) });
    expect(await own.refusal('GET', `/${id}/connection`)).toEqual([409, 'DATABASE_DELETED']);
    expect(await own.refusal('POST', `/${id}/rotate`)).toEqual([409, 'DATABASE_DELETED']);
    await own.remove(id); // once more

    expect(await own.restore(id)).toMatchObject({ status: 'ready', deletedAt: null, purgeAt: null });
    await using again = await enter(details);
    expect((await again.query('SELECT * FROM notes'))[0]).toEqual([{ words: 'kept' }]);
    expect(await own.restore(id)).toMatchObject({ status: 'ready' });
  });

  test('The name of a deleted database is free for another one, which then prevents the restore', async () => {
    const { id } = await own.make('named');
    await own.remove(id);
    await own.make('named');
    expect(await own.refusal('POST', `/${id}/restore`)).toEqual([409, 'DATABASE_NAME_TAKEN']);
  });

  test('A deleted database can be renamed, and then restored beside the other one', async () => {
    const { id } = await own.make('twice');
    await own.remove(id);
    const other = await own.make('twice');
    expect(await own.refusal('PATCH', `/${other.id}`, { name: ' twice' })).toEqual([400, 'INVALID_REQUEST']);
    expect(await own.rename(id, 'twice, the first')).toMatchObject({ id, name: 'twice, the first', status: 'deleted' });
    expect(await own.restore(id)).toMatchObject({ name: 'twice, the first', status: 'ready' });
    expect(await own.refusal('PATCH', `/${id}`, { name: 'twice' })).toEqual([409, 'DATABASE_NAME_TAKEN']);
    // Composed and decomposed é are the same name. Upper and lower case differ.
    await own.rename(id, 'caf\u00e9');
    expect(await own.refusal('PATCH', `/${other.id}`, { name: 'cafe\u0301' })).toEqual([409, 'DATABASE_NAME_TAKEN']);
    expect(await own.rename(other.id, 'Caf\u00e9')).toMatchObject({ name: 'Caf\u00e9' });
    const stranger = await product.user();
    expect(await own.refusal('PATCH', `/${id}`, { name: 'mine' }, stranger)).toEqual([404, 'NOT_FOUND']);
  });

  test('A purge on request removes a deleted database from the server and from the list', async () => {
    const { id } = await own.make('in the way');
    const names = await serverNames(id);
    expect(await own.refusal('POST', `/${id}/purge`)).toEqual([409, 'DATABASE_NOT_DELETED']);
    await own.remove(id);
    await own.purge(id);
    const { databases, users } = await onServer();
    expect([databases.includes(names.name), users.includes(names.user)]).toEqual([false, false]);
    expect(await own.refusal('GET', `/${id}`)).toEqual([404, 'NOT_FOUND']);
    expect(await own.refusal('POST', `/${id}/purge`)).toEqual([404, 'NOT_FOUND']);
    expect((await own.list()).map((one) => one.id)).not.toContain(id);
  });

  test('A deleted database is removed from the server when its time is over', async () => {
    const { id } = await own.make('purged');
    const names = await serverNames(id);
    await own.remove(id);
    expect((await onServer()).databases).toContain(names.name);
    await query('UPDATE space_databases SET purge_at = ?, due_at = ? WHERE id = ?', [new Date(0), new Date(0), id]);
    await waitFor('the database to be gone', async () => !(await onServer()).databases.includes(names.name));
    await waitFor('the account to be gone', async () => !(await onServer()).users.includes(names.user));
    expect(await own.refusal('GET', `/${id}`)).toEqual([404, 'NOT_FOUND']);
    expect(await own.refusal('POST', `/${id}/restore`)).toEqual([404, 'NOT_FOUND']);
    // The row is removed later.
    await waitFor('the row to be forgotten', async () => {
      const [rows] = await query('SELECT 1 FROM space_databases WHERE id = ?', [id]);
      return (rows as unknown[]).length === 0;
    });
  });

  test('Deleting a space removes its databases at once', async () => {
    const other = await product.user();
    const theirs = databasesOf(other);
    const { id } = await theirs.make('of the space');
    const names = await serverNames(id);
    await other.fetch(`/api/spaces/${other.spaceId}`, { method: 'DELETE' });
    await waitFor('the space to be purged', async () => {
      const [rows] = await query('SELECT 1 FROM space_databases WHERE id = ?', [id]);
      return (rows as unknown[]).length === 0;
    });
    const { databases, users } = await onServer();
    expect([databases.includes(names.name), users.includes(names.user)]).toEqual([false, false]);
  });
});

const plain = { isFull: false, compacts: false };

describe('the sweeper', () => {
  test('The sweeper makes a database again that the server has lost', async () => {
    const { id } = await own.make('lost');
    const details = await own.connection(id);
    const { name, user: account } = await serverNames(id);
    await server.align(name, async () => ({ name, state: 'gone', ...plain, accounts: [accountOf(account)] }));
    await waitFor('the database to be made again', () => opens(details));
  });

  test('The sweeper closes a database that the server has open against its row', async () => {
    const { id } = await own.make('reopened');
    const details = await own.connection(id);
    const { name, user: account } = await serverNames(id);
    await own.remove(id);
    await server.align(name, async () => ({ name, state: 'open', ...plain, accounts: [accountOf(account)] }));
    await waitFor('the database to be closed again', async () => !(await opens(details)));
  });
});
