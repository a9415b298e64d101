import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { appsOf, manifestOf, webhookManifest } from '../../builders/app.ts';
import { asUser, buildChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// No host runs here: these tests check which deliveries are accepted. That they run is tested in deliveries.test.ts.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({});
});
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

test('A repeated signed delivery returns the first run, also after that run is forgotten', async () => {
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
  // Also after the run itself was deleted.
  await apps.ended(first.body.runId);
  const { pool } = product.environment.database;
  await pool.query('DELETE FROM app_runs WHERE id = ?', [first.body.runId]);
  expect((await apps.deliver(id, sent)).body.runId).toBe(first.body.runId);
  expect((await apps.deliveries(id)).body.data).toMatchObject([{ status: null }]);
  expect((await apps.runs(id)).body.data).toEqual([]);
});

test('A refused signature says which header is wrong, and keeps no delivery and no id', async () => {
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
  // None of the ids was used up.
  expect(await apps.deliver(id, signed)).toMatchObject({
    status: 200,
    body: { message: expect.stringContaining('started a run') },
  });
  expect((await apps.deliver(id, { secret, id: 'a'.repeat(200) })).status).toBe(200);
});

test('The old and the new secret are both valid for a while, and meanwhile there is no third', async () => {
  const { apps, id } = await setUp();
  const first = await apps.secret(id);
  const second = await apps.secret(id);
  expect((await apps.deliver(id, { secret: first })).status).toBe(200);
  expect((await apps.deliver(id, { secret: second })).status).toBe(200);
  // A third secret would lock out a sender unnoticed.
  const path = `/api/apps/${id}/webhook/secret`;
  const renew = (body: object, key = randomUUID()) =>
    apps.send<{ secret: string; previousUntil: string | null }>('POST', path, body, { 'idempotency-key': key });
  expect(await renew({})).toMatchObject({ status: 409, body: { code: 'SECRET_RENEWED_LATELY' } });
  expect((await apps.deliver(id, { secret: first })).status).toBe(200);
  const { pool } = product.environment.database;
  await pool.query('UPDATE app_webhook_secrets SET old_secret_until = ?', [new Date(Date.now() - 1_000)]);
  expect((await apps.deliver(id, { secret: first })).status).toBe(401);
  // A client that missed the answer repeats the request and gets the same secret.
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
  // The log never contains the secret.
  expect(product.process.log()).not.toContain(third.slice('whsec_'.length));
});

test('A bearer token replaces the signature only for callers who may run the app', async () => {
  const { user, apps, id } = await setUp();
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const sent = await apps.deliver(id, { ...bearer(user.token), id: 'same' });
  expect(sent.status).toBe(200);
  // A signed delivery with the same id is another delivery.
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
  // The webhook gets a secret that this key may not read, so the key may neither deliver nor renew the signing secret.
  await apps.put(id, 'atrium.yaml', webhookManifest('cat', { secrets: ['TOKEN'] }));
  expect(await apps.deliver(id, bearer(key))).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  const byKey = appsOf(product, asUser(product, { ...user, token: key }));
  const renewed = await byKey.send('POST', `/api/apps/${id}/webhook/secret`);
  expect(renewed).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  // An app that a key creates with more than the key's rights runs nothing until it is approved.
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
  // The same id, sent to both webhooks, is a run of each.
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

test('A webhook without authentication takes every delivery, and recognises repeats by their id header', async () => {
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
  // From now on deliveries must be signed.
  await apps.put(id, 'atrium.yaml', webhookManifest('cat'));
  expect(await apps.deliver(id)).toMatchObject(refused('webhook-id'));
});

test('Deliveries are refused for a missing, trashed or removed app, and for an app without a webhook', async () => {
  const { apps, id } = await setUp(manifestOf('true'));
  expect(await apps.deliver(id)).toMatchObject({ status: 409, body: { code: 'APP_NO_WEBHOOK' } });
  expect(await apps.deliver('itm_none')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  const other = await setUp();
  const secret = await other.apps.secret(other.id);
  // 404 for an app under the address of another space.
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
  // Registered again, it is a new app, for which the old secret is not valid.
  await other.apps.make(other.id);
  expect((await other.apps.deliver(other.id, { secret })).status).toBe(401);
  expect((await other.apps.deliveries(other.id)).body.data).toEqual([]);
});

test('A delivery is refused while its component names an unknown environment, and a repeat still finds its run', async () => {
  const { apps, id } = await setUp();
  const secret = await apps.secret(id);
  const first = await apps.deliver(id, { secret, id: 'msg_1' });
  await apps.put(id, 'atrium.yaml', webhookManifest('cat', { environment: 'gone' }));
  expect(await apps.deliver(id, { secret, id: 'msg_2' })).toMatchObject({
    status: 409,
    body: { code: 'APP_ENVIRONMENT_UNKNOWN' },
  });
  expect((await apps.deliver(id, { secret, id: 'msg_1' })).body).toMatchObject({ runId: first.body.runId });
  expect((await apps.deliveries(id)).body.data).toHaveLength(1);
});

test('An invalid manifest leaves the webhook of the last valid one', async () => {
  const { apps, id } = await setUp();
  const secret = await apps.secret(id);
  await apps.put(id, 'atrium.yaml', 'name: x\n');
  expect((await apps.deliver(id, { secret })).status).toBe(200);
});

test('A body has at most 1 MiB, also when it is sent in chunks', async () => {
  const { user, apps, id } = await setUp(webhookManifest('cat', { auth: 'none' }));
  expect((await apps.deliver(id, { body: Buffer.alloc(1_048_576, 0xff) })).status).toBe(200);
  const large = await apps.deliver(id, { body: Buffer.alloc(1_048_577) });
  expect(large).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } });
  // In chunks, without a length and without an end.
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

test('404 for deliveries of other spaces, and 410 for replaying a delivery that is no longer kept', async () => {
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
