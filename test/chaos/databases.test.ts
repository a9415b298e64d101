import { createTenantServer, type TenantServer } from '../../integrations/databases/tenantServer.ts';
import { namesOf } from '../../models/databases/names.ts';
import type { ChatUser } from '../builders/chat.ts';
import { databasesOf, enter, opens } from '../builders/databases.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { tenantServer } from '../support/runServer.ts';
import { sizeOf } from '../support/size.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('databases');

// Atrium is killed between two statements to the server, or the server is away. Each request takes effect once, and
// nothing else is left.

// Each kill costs a start, which takes long on a busy machine.
jest.setTimeout(600_000);

const kills = sizeOf('DATABASE_KILLS', 1);

let product: TestProduct;
let proxy: TcpProxy;
let server: TenantServer;
let user: ChatUser;
let own: ReturnType<typeof databasesOf>;
beforeAll(async () => {
  const tenants = await tenantServer();
  const url = tenants.ATRIUM_TENANT_DATABASE_URL ?? '';
  proxy = await startTcpProxy(() => url);
  const proxied = Object.assign(new URL(url), { host: new URL(proxy.url).host }).href;
  // Without the admin port, all statements of the product pass this proxy.
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_TENANT_DATABASE_URL: proxied,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    ATRIUM_DATABASES_PER_SPACE: '100',
  });
  const { databases } = product.environment.config;
  server = createTenantServer({ url, adminPort: Number(tenants.ATRIUM_TENANT_DATABASE_ADMIN_PORT) }, databases);
  user = await product.user();
  own = databasesOf(user);
});
afterAll(async () => {
  await product.close();
  await proxy.stop();
});

/** Kills the process after the server was sent these words and before it has answered, then starts it again. */
async function killAt(words: string[], ask: () => Promise<unknown>): Promise<void> {
  const isSent = proxy.loseAnswerTo(...words);
  const asking = ask().catch(() => undefined);
  await waitFor(`the server to be sent ${words.join(' … ')}`, isSent);
  await product.process.kill('SIGKILL');
  await asking;
  await product.restart();
}

async function namesInRows(): Promise<string[]> {
  const [rows] = await product.environment.database.pool.query(
    `SELECT server_name AS name FROM space_databases WHERE state <> 'purged' UNION ALL
     SELECT a.server_user FROM space_database_accounts a JOIN space_databases d ON d.id = a.database_id
      WHERE d.state <> 'purged'`,
  );
  return (rows as { name: string }[]).map(({ name }) => name).sort();
}

const making = ['CREATE DATABASE', 'CREATE USER', 'GRANT', 'ACCOUNT UNLOCK'];
const backingUp = ['SET SESSION TRANSACTION', 'START TRANSACTION', 'SHOW CREATE TABLE', 'SELECT `words`', 'TRIGGERS'];
const restoring = ['DROP DATABASE', 'ACCOUNT UNLOCK', 'foreign_key_checks', 'CREATE TABLE `notes`', 'INSERT INTO'];
const removing = ['ACCOUNT LOCK', 'DROP DATABASE', 'DROP USER'];
const some = <T>(all: T[]): T[] => (kills >= all.length ? all : all.slice(-kills));

test.each(some(making))('A database whose making is killed at %s is made once', async (words) => {
  await killAt([words], () => own.make(words));
  const [made, ...more] = (await own.list()).filter(({ name }) => name === words);
  const id = made?.id ?? '';
  await waitFor('the database to be ready', async () => (await own.get(id)).status === 'ready');
  expect(await opens(await direct(id))).toBe(true);
  expect(more).toEqual([]);
});

full.test('After a kill during a rotation the new password is valid, and so is the old one for now', async () => {
  const { id } = await own.make('rotated');
  const before = await direct(id);
  await killAt(['IDENTIFIED'], () => own.rotate(id));
  const after = await direct(id);
  expect(after.password).not.toBe(before.password);
  await waitFor('the new password to hold', () => opens(after));
  expect(await opens(before)).toBe(true);
});

full.test.each(some(removing))('A purge that is killed at %s removes the database', async (words) => {
  const { id } = await own.make(`removed at ${words}`);
  const before = await direct(id);
  await own.remove(id);
  expect(await opens(before)).toBe(false);
  await killAt([words], () =>
    product.environment.database.pool.query('UPDATE space_databases SET purge_at = ?, due_at = ? WHERE id = ?', [
      new Date(0),
      new Date(0),
      id,
    ]),
  );
  await waitFor('the database to be gone', async () => {
    const { databases } = await server.find({ database: before.database, user: 'none' });
    return databases.length === 0;
  });
});

/** A database with a table that has one row. */
async function makeFilled(name: string): Promise<string> {
  const { id } = await own.make(name);
  await using connection = await enter(await direct(id));
  await connection.query('CREATE TABLE notes (words VARCHAR(50))');
  await connection.query("INSERT INTO notes VALUES ('kept')");
  return id;
}

full.test.each(some(backingUp))('A backup that is killed at %s is made once', async (words) => {
  const id = await makeFilled(`backed up at ${words}`);
  await killAt([words], () => own.backUp(id));
  await waitFor('the backup to be made', async () => (await own.backups(id))[0]?.status === 'kept');
  expect(await own.backups(id)).toHaveLength(1);
});

test.each(some(restoring))('A restore that is killed at %s makes one database with its rows', async (words) => {
  const id = await makeFilled(`to be restored at ${words}`);
  const name = `restored at ${words}`;
  const { id: backup } = await own.backUp(id);
  await killAt([words], () => own.restoreFrom(id, backup, name));
  const [made, ...more] = (await own.list()).filter((one) => one.name === name);
  await waitFor('the database to be ready', async () => (await own.get(made?.id ?? '')).status === 'ready');
  expect(more).toEqual([]);
  await using connection = await enter(await direct(made?.id ?? ''));
  expect((await connection.query('SELECT words FROM notes'))[0]).toEqual([{ words: 'kept' }]);
});

test('Deleting a database does not wait for its restore, and undeleting it completes the restore', async () => {
  const id = await makeFilled('to be restored for ever');
  const { id: backup } = await own.backUp(id);
  const isHeld = proxy.holdAnswerTo('INSERT INTO `notes`');
  const restoring = own.restoreFrom(id, backup, 'never wanted').catch(() => undefined);
  await waitFor('the rows to be sent', isHeld);
  const [made] = (await own.list()).filter(({ name }) => name === 'never wanted');
  expect((await user.fetch(`${own.root}/${made?.id}`, { method: 'DELETE' })).status).toBe(204);
  await restoring;
  expect((await own.get(made?.id ?? '')).status).toBe('deleted');
  await own.restore(made?.id ?? '');
  await waitFor('the database to be ready', async () => (await own.get(made?.id ?? '')).status === 'ready');
  await using connection = await enter(await direct(made?.id ?? ''));
  expect((await connection.query('SELECT words FROM notes'))[0]).toEqual([{ words: 'kept' }]);
});

test('The object store has exactly the backups that have rows', async () => {
  const query = async <T>(sql: string) => (await product.environment.database.pool.query(sql))[0] as T[];
  // Ends the leases of objects whose senders were killed.
  await query("UPDATE drive_objects SET lease_expires_at = '2000-01-01' WHERE state = 'arriving'");
  await waitFor('the store to match the rows', async () => {
    const backups = await query<{ name: string }>('SELECT object_key AS name FROM space_database_backups ORDER BY 1');
    const objects = await query<{ name: string }>(
      'SELECT object_key AS name FROM drive_objects WHERE size > 0 ORDER BY 1',
    );
    return JSON.stringify(objects) === JSON.stringify(backups);
  });
});

full.test('An unavailable server is reported, and the database is made when the server is back', async () => {
  proxy.shut();
  // Reported by the answer, or by the operation if the request did not wait for its end.
  const answer = await user.fetch(`/api/spaces/${user.spaceId}/databases`, {
    method: 'POST',
    body: { name: 'patient' },
  });
  expect([202, 503]).toContain(answer.status);
  const told = (await answer.json()) as { id?: string; code?: string };
  const code = answer.status === 503 ? told.code : await failureOf(told.id ?? '');
  expect(code).toBe('DATABASE_SERVER_UNAVAILABLE');
  const [made] = (await own.list()).filter(({ name }) => name === 'patient');
  expect(made?.status).toBe('creating');
  expect(await own.refusal('GET', `/${made?.id}/connection`)).toEqual([409, 'DATABASE_NOT_READY']);
  proxy.open();
  await waitFor('the database to be made', async () => (await own.get(made?.id ?? '')).status === 'ready');
});

test('The server has exactly the databases and users that have rows', async () => {
  await waitFor('the server to match the rows', async () => {
    const { databases, users } = await server.find(namesOf(product.environment.config.installation));
    return JSON.stringify([...databases, ...users].sort()) === JSON.stringify(await namesInRows());
  });
});

/** The code with which an operation has failed. */
function failureOf(operationId: string): Promise<string> {
  return waitFor('the operation to fail', async () => {
    const response = await user.fetch(`/api/operations/${operationId}`);
    const { status, error } = (await response.json()) as { status: string; error?: { code: string } };
    return status === 'failed' ? error?.code : undefined;
  });
}

/** Connection details that bypass the proxy. */
async function direct(id: string) {
  const details = await own.connection(id);
  const url = Object.assign(new URL(details.url), { host: `127.0.0.1:${server.port}` }).href;
  return { ...details, url };
}
