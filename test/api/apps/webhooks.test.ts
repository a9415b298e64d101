import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { appsOf, manifestOf, webhookManifest } from '../../builders/app.ts';
import { asUser, buildChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// Where nothing runs computers: what is taken, and what is refused. That deliveries run is in deliveries.test.ts.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({});
}, 60_000);
afterAll(() => product.close());

async function setUp(manifest = webhookManifest('cat')) {
  const user = await buildChatUser(product);
  const apps = appsOf(product, user);
  const id = await apps.app(manifest);
  return { user, apps, id };
}

const refused = (header: string) => ({
  status: 401,
  body: { code: 'INVALID_SIGNATURE', errors: [{ pointer: header }] },
});

test('a signed delivery is kept once, for ever', async () => {
  const { apps, id } = await setUp();
  expect(await apps.deliver(id, { secret: `whsec_${'A'.repeat(44)}` })).toMatchObject(refused('webhook-signature'));
  const secret = await apps.secret(id);
  const sent = { secret, id: 'msg_1', body: '{"n":1}' };
  const first = await apps.deliver(id, sent);
  expect(first).toMatchObject({ status: 200, body: { ok: true, component: 'receive', runId: expect.any(String) } });
  const [second, ...others] = await Promise.all([1, 2, 3].map(() => apps.deliver(id, sent)));
  expect(second).toMatchObject({ status: 200, body: { ok: true, runId: first.body.runId } });
  expect(new Set(others.map(({ body }) => body.runId))).toEqual(new Set([first.body.runId]));
  const { data } = (await apps.deliveries(id)).body;
  expect(data).toMatchObject([
    { deliveryId: 'msg_1', auth: 'signature', method: 'POST', bodyBytes: 7, isKept: true, runId: first.body.runId },
  ]);
  expect((await apps.getRun(first.body.runId)).body).toMatchObject({ trigger: 'webhook', component: 'receive' });
  // Also when the run itself is long forgotten.
  await apps.ended(first.body.runId);
  const { pool } = product.environment.database;
  await pool.query('DELETE FROM app_runs WHERE id = ?', [first.body.runId]);
  expect((await apps.deliver(id, sent)).body.runId).toBe(first.body.runId);
  expect((await apps.deliveries(id)).body.data).toMatchObject([{ status: null }]);
  expect((await apps.runs(id)).body.data).toEqual([]);
});

test('what is wrong with a signature is said, and what is refused leaves nothing', async () => {
  const { apps, id } = await setUp();
  const secret = await apps.secret(id);
  const now = Math.floor(Date.now() / 1_000);
  const signed = { secret, id: 'msg_2' };
  expect(await apps.deliver(id)).toMatchObject(refused('webhook-id'));
  expect(await apps.deliver(id, { id: 'msg_2' })).toMatchObject(refused('webhook-timestamp'));
  expect(await apps.deliver(id, { ...signed, headers: { 'webhook-signature': '' } })).toMatchObject(
    refused('webhook-signature'),
  );
  expect(await apps.deliver(id, { ...signed, timestamp: now - 301 })).toMatchObject(refused('webhook-timestamp'));
  expect(await apps.deliver(id, { ...signed, timestamp: now + 310 })).toMatchObject(refused('webhook-timestamp'));
  const other = { 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}` };
  expect(await apps.deliver(id, { ...signed, headers: other })).toMatchObject(refused('webhook-signature'));
  expect(await apps.deliver(id, { ...signed, body: 'a', headers: { 'webhook-id': 'msg_3' } })).toMatchObject(
    refused('webhook-signature'),
  );
  for (const odd of ['a.b', 'a'.repeat(201), 'ä', 'a b']) {
    const answer = await apps.deliver(id, { secret, headers: { 'webhook-id': encodeURIComponent(odd) } });
    expect([odd, answer.status]).toEqual([odd, 400]);
  }
  expect((await apps.deliveries(id)).body.data).toEqual([]);
  // None of the ids was burnt.
  expect(await apps.deliver(id, signed)).toMatchObject({
    status: 200,
    body: { message: expect.stringContaining('runs') },
  });
  expect((await apps.deliver(id, { secret, id: 'a'.repeat(200) })).status).toBe(200);
});

test('two secrets hold while one takes over from the other', async () => {
  const { apps, id } = await setUp();
  const first = await apps.secret(id);
  const second = await apps.secret(id);
  expect((await apps.deliver(id, { secret: first })).status).toBe(200);
  expect((await apps.deliver(id, { secret: second })).status).toBe(200);
  // No third one shuts out a sender unseen.
  const path = `/api/apps/${id}/webhook/secret`;
  const renew = (body: object, key = randomUUID()) =>
    apps.send<{ secret: string; previousUntil: string | null }>('POST', path, body, { 'idempotency-key': key });
  expect(await renew({})).toMatchObject({ status: 409, body: { code: 'SECRET_RENEWED_LATELY' } });
  expect((await apps.deliver(id, { secret: first })).status).toBe(200);
  const { pool } = product.environment.database;
  await pool.query('UPDATE app_webhook_secrets SET old_secret_until = ?', [new Date(Date.now() - 1_000)]);
  expect((await apps.deliver(id, { secret: first })).status).toBe(401);
  // Whoever has not heard the answer asks for the same again.
  const key = randomUUID();
  const renewed = await renew({}, key);
  expect(renewed).toMatchObject({ status: 201, body: { previousUntil: expect.any(String) } });
  expect((await renew({}, key)).body).toEqual(renewed.body);
  expect((await apps.deliver(id, { secret: second })).status).toBe(200);
  const third = await apps.secret(id, { revokePrevious: true });
  for (const secret of [second, renewed.body.secret]) expect((await apps.deliver(id, { secret })).status).toBe(401);
  expect((await apps.deliver(id, { secret: third })).status).toBe(200);
  expect(await renew({}, key)).toMatchObject({ status: 409, body: { code: 'SECRET_RENEWED' } });
  expect(await renew({ revokePrevius: true })).toMatchObject({ status: 400 });
  // What is known of a secret is that it was made.
  expect(product.process.log()).not.toContain(third.slice('whsec_'.length));
});

test('somebody who may run the app needs no signature, and nobody else gets by with a bearer', async () => {
  const { user, apps, id } = await setUp();
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const sent = await apps.deliver(id, { ...bearer(user.token), id: 'same' });
  expect(sent.status).toBe(200);
  // A signed delivery of the same name is another one.
  const signed = await apps.deliver(id, { secret: await apps.secret(id), id: 'same' });
  expect(signed.body.runId).not.toBe(sent.body.runId);
  const { data } = (await apps.deliveries(id)).body;
  expect(data.map(({ auth }) => auth)).toEqual(['signature', 'bearer']);
  const [stranger, viewer] = [await buildChatUser(product), await buildChatUser(product)];
  expect(await apps.deliver(id, bearer(stranger.token))).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  expect(await apps.deliver(id, bearer(viewer.token))).toMatchObject({ status: 403, body: { code: 'ROLE_TOO_LOW' } });
  expect((await apps.deliver(id, bearer('none'))).status).toBe(401);
  const keyWith = async (...scopes: string[]) => {
    const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes } });
    return ((await made.json()) as { key: string }).key;
  };
  const narrow = await keyWith('apps:read');
  expect(await apps.deliver(id, bearer(narrow))).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  const key = await keyWith('apps:write', 'apps:read', 'drive:write', 'drive:read');
  expect((await apps.deliver(id, bearer(key))).status).toBe(200);
  // What the webhook is given is not for a key that may not read it; nor is the secret that would do the same.
  await apps.put(id, 'atrium.yaml', webhookManifest('cat', { secrets: ['TOKEN'] }));
  expect(await apps.deliver(id, bearer(key))).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  const byKey = appsOf(product, asUser(product, { ...user, token: key }));
  const renewed = await byKey.send('POST', `/api/apps/${id}/webhook/secret`);
  expect(renewed).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  // An app that a key makes of more than it may do runs nothing until somebody who may approves it.
  const own = await byKey.app(webhookManifest('cat', { secrets: ['TOKEN'] }));
  const unapproved = await byKey.deliver(own, { secret: await byKey.secret(own) });
  expect(unapproved).toMatchObject({ status: 409, body: { code: 'APP_VERSION_WAITS' } });
});

test('each webhook of an app has an address of its own', async () => {
  const component = { kind: 'webhook', command: 'cat' };
  const components = [
    { ...component, name: 'one' },
    { ...component, name: 'two', auth: 'none' },
    { ...component, name: 'build', kind: 'process' },
  ];
  const { apps, id } = await setUp(JSON.stringify({ name: 'App', components }));
  const secret = await apps.secret(id);
  const signed = { secret, id: 'msg_1' };
  const one = await apps.deliver(id, { ...signed, component: 'one' });
  expect(one).toMatchObject({ status: 200, body: { component: 'one' } });
  expect((await apps.deliver(id, { ...signed, component: 'one' })).body.runId).toBe(one.body.runId);
  expect(await apps.deliver(id, { component: 'one' })).toMatchObject(refused('webhook-id'));
  // What one sender calls by one name for both is a run of each.
  const two = await apps.deliver(id, { ...signed, component: 'two', method: 'GET', query: '?a=1' });
  expect(two).toMatchObject({ status: 200, body: { component: 'two' } });
  expect(two.body.runId).not.toBe(one.body.runId);
  const none = { status: 409, body: { code: 'APP_NO_WEBHOOK' } };
  expect(await apps.deliver(id, signed)).toMatchObject({
    ...none,
    body: { detail: expect.stringContaining('Add the name of a component to the address') },
  });
  for (const name of ['build', 'three']) expect(await apps.deliver(id, { component: name })).toMatchObject(none);
  const [delivery] = (await apps.deliveries(id)).body.data;
  expect(delivery).toMatchObject({ component: 'two', method: 'GET' });
});

test('a webhook without a proof takes what comes, and tells repeats apart where they have a name', async () => {
  const { apps, id } = await setUp(webhookManifest('cat', { auth: 'none' }));
  const same = { headers: { 'x-github-delivery': randomUUID() } };
  const [one, two] = [await apps.deliver(id, same), await apps.deliver(id, same)];
  expect([one.status, two.status, one.body.runId === two.body.runId]).toEqual([200, 200, true]);
  const nameless = [await apps.deliver(id), await apps.deliver(id)];
  expect(nameless[0]?.body.runId).not.toBe(nameless[1]?.body.runId);
  for (const method of ['PUT', 'PATCH', 'DELETE', 'GET']) {
    expect([method, (await apps.deliver(id, { method, query: '?a=1' })).status]).toEqual([method, 200]);
  }
  const { data } = (await apps.deliveries(id)).body;
  expect(data.map(({ method }) => method)).toEqual(['GET', 'DELETE', 'PATCH', 'PUT', 'POST', 'POST', 'POST']);
  const head = await fetch(`${product.url}${`/api/webhooks/${data[0]?.spaceId}/${id}`}`, { method: 'HEAD' });
  expect(head.status).toBe(405);
  // From now on it must be signed.
  await apps.put(id, 'atrium.yaml', webhookManifest('cat'));
  expect(await apps.deliver(id)).toMatchObject(refused('webhook-id'));
});

test('an app that there is not, that has no webhook, or that is gone, takes nothing', async () => {
  const { apps, id } = await setUp(manifestOf('true'));
  expect(await apps.deliver(id)).toMatchObject({ status: 409, body: { code: 'APP_NO_WEBHOOK' } });
  expect(await apps.deliver('itm_none')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  const other = await setUp();
  const secret = await other.apps.secret(other.id);
  // Another space's app is not in this one.
  expect((await apps.deliver(other.id, { secret })).status).toBe(404);
  const two = ['a', 'b'].map((name) => ({ name, kind: 'webhook', command: 'cat' }));
  await apps.put(id, 'atrium.yaml', JSON.stringify({ name: 'App', components: two }));
  expect(await apps.deliver(id)).toMatchObject({ status: 409, body: { code: 'APP_NO_WEBHOOK' } });
  const { user } = other;
  await user.fetch(`/api/spaces/${user.spaceId}/drive/items/${other.id}`, { method: 'DELETE' });
  expect((await other.apps.deliver(other.id, { secret })).status).toBe(404);
  await user.fetch(`/api/spaces/${user.spaceId}/drive/items/${other.id}/restore`, { method: 'POST' });
  expect((await other.apps.deliver(other.id, { secret })).status).toBe(200);
  await other.apps.remove(other.id);
  expect((await other.apps.deliver(other.id, { secret })).status).toBe(404);
  // Made again it is another app, with which the old secret has nothing to do.
  await other.apps.make(other.id);
  expect((await other.apps.deliver(other.id, { secret })).status).toBe(401);
  expect((await other.apps.deliveries(other.id)).body.data).toEqual([]);
});

test('a manifest that is wrong now leaves the webhook that there was', async () => {
  const { apps, id } = await setUp();
  const secret = await apps.secret(id);
  await apps.put(id, 'atrium.yaml', 'name: x\n');
  expect((await apps.deliver(id, { secret })).status).toBe(200);
});

test('a body has at most 1 MiB, however it is sent', async () => {
  const { user, apps, id } = await setUp(webhookManifest('cat', { auth: 'none' }));
  expect((await apps.deliver(id, { body: Buffer.alloc(1_048_576, 0xff) })).status).toBe(200);
  const large = await apps.deliver(id, { body: Buffer.alloc(1_048_577) });
  expect(large).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } });
  // In pieces, without saying how much it will be, and without an end.
  const status = await new Promise((resolve, reject) => {
    const url = `${product.url}/api/webhooks/${user.spaceId}/${id}`;
    const sending = request(url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }, (response) => {
      resolve(response.statusCode);
      response.resume();
      sending.destroy();
    });
    sending.on('error', reject);
    for (let piece = 0; piece < 20; piece++) sending.write(Buffer.alloc(65_536));
  });
  expect(status).toBe(413);
  expect((await apps.deliveries(id)).body.data).toMatchObject([{ bodyBytes: 1_048_576 }]);
  const headers = { 'x-large': 'a'.repeat(20_000) };
  expect((await apps.deliver(id, { headers }).catch(() => ({ status: 431 }))).status).toBe(431);
});

test('deliveries of others are not there, and one that is not kept any more is not replayed', async () => {
  const { apps, id } = await setUp();
  const other = (await setUp()).apps;
  await apps.deliver(id, { secret: await apps.secret(id), body: 'x' });
  const [delivery] = (await apps.deliveries(id)).body.data;
  const deliveryId = delivery?.id ?? '';
  expect((await other.replay(deliveryId)).status).toBe(404);
  expect((await other.deliveries(id)).status).toBe(404);
  expect((await apps.replay('dlv_none')).status).toBe(404);
  const key = { 'idempotency-key': randomUUID() };
  const [first, again] = [await apps.replay(deliveryId, key), await apps.replay(deliveryId, key)];
  expect([first.status, first.body.runId]).toEqual([200, again.body.runId]);
  expect((await apps.getRun(first.body.runId)).body).toMatchObject({ trigger: 'replay' });
  await apps.put(id, 'atrium.yaml', manifestOf('true'));
  expect(await apps.replay(deliveryId)).toMatchObject({ status: 409, body: { code: 'APP_COMPONENT_UNKNOWN' } });
  await apps.put(id, 'atrium.yaml', manifestOf('true', { name: 'receive' }));
  expect(await apps.replay(deliveryId)).toMatchObject({ status: 409, body: { code: 'APP_COMPONENT_KIND' } });
  await apps.put(id, 'atrium.yaml', webhookManifest('cat'));
  expect(await apps.run(id, { component: 'receive' })).toMatchObject({
    status: 409,
    body: { code: 'APP_COMPONENT_KIND' },
  });
  const { pool } = product.environment.database;
  await pool.query('UPDATE app_deliveries SET has_content = NULL, body = NULL WHERE id = ?', [deliveryId]);
  expect(await apps.replay(deliveryId)).toMatchObject({ status: 410, body: { code: 'DELIVERY_GONE' } });
});
