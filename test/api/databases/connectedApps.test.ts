import { randomUUID } from 'node:crypto';
import { appsOf, manifestOf, webhookManifest } from '../../builders/app.ts';
import { asUser, type ChatUser } from '../../builders/chat.ts';
import { buildHostingProduct } from '../../builders/computer.ts';
import { databasesOf, enter, opens } from '../../builders/databases.ts';
import type { TestProduct } from '../../builders/product.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: apps and their databases', () => {
  let product: TestProduct;
  beforeAll(async () => {
    product = await buildHostingProduct({ ...hurriedSweeper, ...(await tenantServer()) });
  });
  afterAll(() => product.close());

  async function setUp() {
    const user = await product.user();
    const own = databasesOf(user);
    const apps = appsOf(product, user);
    const { id } = await own.make('shop');
    const connect = (itemId: string, databaseId = id) =>
      own.send<{ success: boolean }>('POST', `/${databaseId}/apps/${itemId}`);
    return { user, own, apps, id, connect };
  }

  /** Prints the variables of the database, and the greeting of the server at that address. */
  const prints =
    'echo $DATABASE_URL $DATABASE_HOST $DATABASE_PORT $DATABASE_NAME $DATABASE_USER; ' +
    'exec 3<>/dev/tcp/$DATABASE_HOST/$DATABASE_PORT && head -c 60 <&3 | tr -cd "[:print:]"';
  const bash = (script: string) => `bash -c '${script}'`;

  test('A run gets its database, and the password is in neither its output nor its log', async () => {
    const { own, apps, id, connect } = await setUp();
    const app = await apps.app(manifestOf(bash(prints)));
    expect(await connect(app)).toEqual({ success: true });
    expect(await connect(app)).toEqual({ success: true });
    expect(await own.get(id)).toMatchObject({ appIds: [app] });
    const { database, user: owner } = await own.connection(id);

    const { body } = await apps.run(app);
    expect(body).toMatchObject({ ok: true, status: 'succeeded' });
    const [, account = '', password] = /mysql:\/\/([a-z0-9]+):(\S+)@/.exec(String(body.output)) ?? [];
    expect(password).toMatch(/^\W+$/);
    const { text } = await apps.log(String(body.runId));
    expect(text).toContain(String(body.output));
    expect(account).not.toBe(owner);
    const host = `${database}.databases.internal`;
    expect(body.output).toContain(`@${host}:23306/${database} ${host} 23306 ${database} ${account}\n`);
    // The greeting of MariaDB, or of MySQL.
    expect(body.output).toMatch(/\n.*\d+\.\d+\.\d+/);
  });

  test('A disconnected app is cut off, can no longer get in, and no longer gets the variables', async () => {
    const { own, apps, id, connect } = await setUp();
    const app = await apps.app(manifestOf(bash('echo "it is [$(echo $DATABASE_URL | rev)]"')));
    await connect(app);
    const { body } = await apps.run(app);
    const { text } = await apps.log(String(body.runId));
    // Backwards, the password is not masked. The test gets in with it from outside.
    const inside = new URL([...(/\[(.*)\]/.exec(text)?.[1] ?? '')].reverse().join(''));
    const { port } = await own.connection(id);
    const details = { url: Object.assign(inside, { host: `127.0.0.1:${port}` }).href };
    await using connection = await enter(details);
    await connection.query('CREATE TABLE notes (id INT)');
    await connection.query('CREATE VIEW seen AS SELECT * FROM notes');

    await own.send('DELETE', `/${id}/apps/${app}`);
    await own.send('DELETE', `/${id}/apps/${app}`);
    await expect(connection.query('SELECT 1')).rejects.toBeDefined();
    expect(await opens(details)).toBe(false);
    expect((await apps.run(app)).body.output).toBe('it is []\n');
    expect(await own.get(id)).toMatchObject({ appIds: [] });
    // What the account has made is still usable.
    await using own2 = await enter(await own.connection(id));
    expect((await own2.query('SELECT * FROM seen'))[0]).toEqual([]);

    await connect(app);
    expect(await opens(details)).toBe(false); // another password
    expect((await apps.run(app)).body.output).toContain('//:lqsym');
  });

  test('A run fails while its database is deleted, and runs without it after the purge', async () => {
    const { own, apps, id, connect } = await setUp();
    const app = await apps.app(manifestOf(bash('echo "it is [$DATABASE_NAME]"')));
    await connect(app);
    await own.remove(id);
    const { body } = await apps.run(app);
    expect(body).toMatchObject({ ok: false, status: 'failed' });
    expect((await apps.getRun(String(body.runId))).body).toMatchObject({ error: { code: 'DATABASE_DELETED' } });
    const second = await own.make('second');
    expect(await own.refusal('POST', `/${second.id}/apps/${app}`)).toEqual([409, 'APP_HAS_DATABASE']);
    await own.purge(id);
    expect((await apps.run(app)).body.output).toBe('it is []\n');
    expect(await connect(app, second.id)).toEqual({ success: true });
    const { database } = await own.connection(second.id);
    expect((await apps.run(app)).body.output).toBe(`it is [${database}]\n`);
  });

  test('an app that is removed loses its account', async () => {
    const { own, apps, id, connect } = await setUp();
    const app = await apps.app(manifestOf('true'));
    await connect(app);
    await apps.remove(app);
    await waitFor('the account to be revoked', async () => (await own.get(id)).appIds.length === 0);
    expect(await own.refusal('POST', `/${id}/apps/${app}`)).toEqual([404, 'NOT_FOUND']);
  });

  test('An app has one database of its own space, and a key needs databases:write to run the app', async () => {
    const { user, own, apps, id, connect } = await setUp();
    const other = await setUp();
    const app = await apps.app(manifestOf('true'));
    const theirs = await other.apps.app(manifestOf('true'));
    const refusal = (databaseId: string, itemId: string, as?: ChatUser) =>
      own.refusal('POST', `/${databaseId}/apps/${itemId}`, undefined, as);
    expect(await refusal(id, theirs)).toEqual([404, 'NOT_FOUND']);
    expect(await refusal(other.id, app)).toEqual([404, 'NOT_FOUND']);
    expect(await refusal(id, await apps.folder())).toEqual([404, 'NOT_FOUND']);
    expect(await refusal(id, randomUUID())).toEqual([404, 'NOT_FOUND']);
    expect(await refusal(id, app, other.user)).toEqual([404, 'NOT_FOUND']);
    expect(await own.refusal('DELETE', `/${id}/apps/${app}`)).toEqual([404, 'NOT_FOUND']);

    await connect(app);
    const second = await own.make('second');
    expect(await refusal(second.id, app)).toEqual([409, 'APP_HAS_DATABASE']);
    await own.remove(second.id);
    await own.send('DELETE', `/${id}/apps/${app}`);
    expect(await refusal(second.id, app)).toEqual([409, 'DATABASE_DELETED']);

    // A key that may run apps, but has no scope for databases, cannot get at their credentials.
    await connect(app);
    const scopes = ['apps:write', 'computers:write', 'drive:read'];
    const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes } });
    const { key } = (await made.json()) as { key: string };
    const bot = appsOf(product, asUser(product, { ...user, token: key }));
    const refused = {
      status: 403,
      body: { code: 'INSUFFICIENT_SCOPE', detail: expect.stringContaining('databases:write') },
    };
    expect(await bot.run(app)).toMatchObject(refused);
    await apps.put(app, 'atrium.yaml', webhookManifest('true'));
    expect(await bot.deliver(app, { headers: { authorization: `Bearer ${key}` } })).toMatchObject(refused);
    expect(await bot.send('POST', `/api/apps/${app}/webhook/secret`)).toMatchObject({ status: 403 });
    expect((await apps.runs(app)).body.data).toEqual([]);
  });
});
