import { createHmac } from 'node:crypto';
import type { RowDataPacket } from 'mysql2';
import type { AnswerOf } from '../../../api/frame/answer.ts';
import type { Envelope } from '../../../crypto/envelope.ts';
import { transaction } from '../../../models/database/database.ts';
import { noteAttempt } from '../../../models/webhooks/attempts.ts';
import { createWebhookEndpoints } from '../../../models/webhooks/endpoints.ts';
import { noteEvent, type WebhookEvent } from '../../../models/webhooks/events.ts';
import { disableWhenFull } from '../../../models/webhooks/rounds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { type Received, startReceiver } from '../../builders/webhookReceiver.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

type Endpoint = AnswerOf<'createWebhookEndpoint'>;
type Delivery = AnswerOf<'getWebhookDelivery'>;

let receiver: Awaited<ReturnType<typeof startReceiver>>;
let neighbour: typeof receiver;
let product: TestProduct;
let user: ChatUser;
let root: string;
beforeAll(async () => {
  [receiver, neighbour] = await Promise.all([startReceiver(), startReceiver()]);
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_SWEEP_GRACE_SECONDS: '1',
    ATRIUM_EGRESS_ALLOW_INTERNAL: `${receiver.host},${neighbour.host}`,
    ATRIUM_WEBHOOK_RETRY_SECONDS: '1,1',
  });
});
beforeEach(async () => {
  receiver.received.length = 0;
  neighbour.received.length = 0;
  receiver.answerWith(204);
  user = await product.user();
  root = `/api/spaces/${user.spaceId}/webhook-endpoints`;
});
afterAll(async () => {
  await product.close();
  await Promise.all([receiver.close(), neighbour.close()]);
});

async function send<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
  const response = await user.fetch(`${root}${path}`, { method, body, ...(headers && { headers }) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function refusal(method: string, path: string, body?: unknown, as = user) {
  const response = await as.fetch(`${root}${path}`, { method, body });
  return [response.status, ((await response.json()) as { code: string }).code];
}

const make = (fields: object = {}) => send<Endpoint>('POST', '', { url: receiver.url, ...fields });
const ping = ({ id }: Endpoint) => send<Delivery>('POST', `/${id}/ping`);
const see = ({ endpointId, id }: Delivery) => send<Delivery>('GET', `/${endpointId}/deliveries/${id}`);

function ended(delivery: Delivery): Promise<Delivery> {
  return waitFor('the end of a delivery', async () => {
    const now = await see(delivery);
    return now.status === 'pending' ? undefined : now;
  });
}

/** The signature as a receiver computes it, from the text of the standard alone. */
function signatureOf({ headers, body }: Received, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

/** As if the process had died between the commit of a request and its answer. */
async function loseAnswer(operation: string, key: string): Promise<void> {
  const sql = `UPDATE idempotency_keys SET response_status = NULL, response_body = NULL, claimed_at = ?
    WHERE caller = ? AND operation = ? AND idempotency_key = ?`;
  await product.environment.database.pool.query(sql, [new Date(0), user.id, operation, key]);
}

const note = (event: Omit<WebhookEvent, 'spaceId'>) =>
  transaction(product.environment.database, (tx) => noteEvent(tx, { ...event, spaceId: user.spaceId }));

test('An endpoint is told of a turn that ends, signed, with ids and nothing that was said', async () => {
  const endpoint = await make({ events: ['turn.ended'] });
  const { turnId, threadId } = await user.ask({ content: '/say a secret plan', modelId: 'demo' });
  const [received] = await waitFor('a delivery', () => (receiver.received.length > 0 ? receiver.received : undefined));
  if (received === undefined) throw new Error('Nothing came.');
  expect(received.headers['webhook-signature']).toBe(signatureOf(received, endpoint.secret));
  expect(JSON.parse(received.body)).toEqual({
    type: 'turn.ended',
    timestamp: expect.any(String),
    data: { turnId, threadId, spaceId: user.spaceId, status: 'completed', errorCode: null },
  });
  const { data } = await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`);
  expect(data).toMatchObject([{ id: received.headers['webhook-id'], type: 'turn.ended' }]);
});

test('An endpoint is told of a turn that needs input', async () => {
  const endpoint = await make({ events: ['turn.needs_input'] });
  const clientTools = [{ name: 'paint', description: 'Paints.', inputSchema: { type: 'object' } }];
  const { turnId, threadId } = await user.ask({ content: '/tool paint {}', modelId: 'demo', clientTools });
  const [delivery] = (await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`)).data;
  const data = { turnId, threadId, spaceId: user.spaceId, status: 'waiting' };
  expect(await ended(delivery as Delivery)).toMatchObject({ status: 'delivered', body: { data } });
  expect(receiver.received).toHaveLength(1);
});

test('An endpoint is told only of the events that it asks for, and of each once', async () => {
  const endpoint = await make({ events: ['credits.low'] });
  await note({ id: 'run.ended:1', type: 'run.ended', data: {} });
  const low = { id: 'credits.low:1', type: 'credits.low', data: { balance: 1 } } as const;
  await Promise.all([note(low), note(low), note(low)]);
  const { data } = await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`);
  expect(data.map(({ type }) => type)).toEqual(['credits.low']);
  await ended(data[0] as Delivery);
  expect(receiver.received).toHaveLength(1);
});

test('A delivery that fails is tried again under the same id, is given up, and can be replayed', async () => {
  const endpoint = await make();
  receiver.answerWith(500);
  const delivery = await ping(endpoint);
  expect(await ended(delivery)).toMatchObject({
    ...{ status: 'failed', attempts: 3, lastAnswer: 500, lastError: 'ANSWER_NOT_2XX', nextAttemptAt: null },
  });
  receiver.answerWith(204);
  await send('POST', `/${endpoint.id}/deliveries/${delivery.id}/replay`);
  expect(await ended(delivery)).toMatchObject({ status: 'delivered', attempts: 1, lastAnswer: 204, lastError: null });
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual(Array(4).fill(delivery.id));
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
});

test('An endpoint that does not answer has few deliveries under way, and does not hold up others', async () => {
  await make({ events: ['run.ended'] });
  const release = receiver.hold();
  for (let count = 1; count <= 10; count++) await note({ id: `run.ended:held-${count}`, type: 'run.ended', data: {} });
  await waitFor('the first deliveries', () => receiver.received.length > 0);
  const other = await make({ url: neighbour.url });
  expect(await ended(await ping(other))).toMatchObject({ status: 'delivered' });
  expect(receiver.received.length).toBeLessThanOrEqual(4);
  release();
  await waitFor('all ten deliveries', () => receiver.received.length === 10);
});

test('410 disables the endpoint, which a person can enable again', async () => {
  const endpoint = await make();
  receiver.answerWith(410);
  expect(await ended(await ping(endpoint))).toMatchObject({ status: 'failed', attempts: 1, lastAnswer: 410 });
  const disabled = { enabled: false, disabled: { code: 'GONE', at: expect.any(String) } };
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject(disabled);
  expect(await send('PATCH', `/${endpoint.id}`, { enabled: true })).toMatchObject({ enabled: true, disabled: null });
});

test('An endpoint that has failed for days is disabled, and its waiting deliveries end', async () => {
  const endpoint = await make();
  receiver.answerWith(500);
  const { pool } = product.environment.database;
  const sql = 'UPDATE webhook_endpoints SET failing_since = ?, paused_until = ? WHERE id = ?';
  await pool.query(sql, [new Date(Date.now() - 5 * 86_400_000), new Date(Date.now() + 3_600_000), endpoint.id]);
  for (const id of ['run.ended:1', 'run.ended:2']) await note({ id, type: 'run.ended', data: {} });
  // The next attempt is the last one.
  await pool.query('UPDATE webhook_deliveries SET attempts = 2 WHERE endpoint_id = ?', [endpoint.id]);
  await send('PATCH', `/${endpoint.id}`, { events: ['run.ended'] });
  const { data } = await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`);
  const ends = await Promise.all(data.map(ended));
  expect(ends.map(({ lastError }) => lastError).sort()).toEqual(['ANSWER_NOT_2XX', 'ENDPOINT_DISABLED']);
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject({ enabled: false, disabled: { code: 'FAILING' } });
});

test('An endpoint that asks for time is left alone until then, except for a person’s ping', async () => {
  const endpoint = await make();
  receiver.answerWith(429, { 'retry-after': '3600' });
  const delivery = await ping(endpoint);
  const waits = await waitFor('the first attempt', async () => {
    const now = await see(delivery);
    return now.attempts === 1 ? now : undefined;
  });
  expect(Date.parse(waits.nextAttemptAt ?? '') - Date.parse(waits.createdAt)).toBeGreaterThanOrEqual(3_600_000);
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject({ enabled: true, failingSince: expect.any(String) });
  receiver.answerWith(204);
  await note({ id: 'run.ended:3', type: 'run.ended', data: {} });
  expect(await ended(await ping(endpoint))).toMatchObject({ status: 'delivered' });
  await waitFor('the event', () => receiver.received.length === 3);
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject({ failingSince: null });
});

test('A failure of another delivery does not shorten the pause that an answer asked for', async () => {
  const endpoint = await make();
  receiver.answerWith(429, { 'retry-after': '3600' });
  const delivery = await ping(endpoint);
  await waitFor('the first attempt', async () => (await see(delivery)).attempts === 1);
  const { database } = product.environment;
  await note({ id: 'run.ended:6', type: 'run.ended', data: {} });
  const { data } = await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`);
  const other = { id: data.find(({ type }) => type === 'run.ended')?.id ?? '', body: '', attempts: 0, replayId: null };
  const failed = { answer: 500, error: 'ANSWER_NOT_2XX' };
  const limits = { retryDelaysMs: [1_000], failingMs: 86_400_000 };
  await noteAttempt(database, { endpointId: endpoint.id, revision: 0 }, other, failed, limits);
  const pausedMs = async () => {
    const sql = 'SELECT paused_until AS until FROM webhook_endpoints WHERE id = ?';
    const [[row]] = await database.pool.query<(RowDataPacket & { until: Date })[]>(sql, [endpoint.id]);
    return (row?.until.getTime() ?? 0) - Date.now();
  };
  expect(await pausedMs()).toBeGreaterThan(3_500_000);
});

test('An answer from the former URL of an endpoint does not count for its present URL', async () => {
  const endpoint = await make();
  receiver.answerWith(410);
  const release = receiver.hold();
  const delivery = await ping(endpoint);
  await waitFor('the first attempt', () => receiver.received.length === 1);
  await send('PATCH', `/${endpoint.id}`, { url: neighbour.url });
  release();
  expect(await ended(delivery)).toMatchObject({ status: 'delivered', attempts: 1, lastAnswer: 204 });
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject({ enabled: true, failingSince: null });
  expect(neighbour.received.map(({ headers }) => headers['webhook-id'])).toContain(delivery.id);
});

test('An attempt from before a replay does not count for the replay', async () => {
  const endpoint = await make();
  const delivery = await ping(endpoint);
  await ended(delivery);
  receiver.answerWith(429, { 'retry-after': '3600' });
  const replayed = await send<Delivery>('POST', `/${endpoint.id}/deliveries/${delivery.id}/replay`);
  expect(replayed).toMatchObject({ attempts: 0, lastAnswer: null, lastError: null });
  await waitFor('the attempt of the replay', async () => (await see(delivery)).attempts === 1);
  const late = { ...delivery, body: '', attempts: 1, replayId: null };
  const taken = { answer: 204, error: null };
  const limits = { retryDelaysMs: [1_000], failingMs: 86_400_000 };
  await noteAttempt(product.environment.database, { endpointId: endpoint.id, revision: 0 }, late, taken, limits);
  expect(await see(delivery)).toMatchObject({ status: 'pending', attempts: 1 });
});

test('The deliveries of a deleted endpoint are forgotten by the sweep, also without a hint', async () => {
  const endpoint = await make();
  await ended(await ping(endpoint));
  const { database } = product.environment;
  // The hint stays in this process, where no worker listens.
  const endpoints = createWebhookEndpoints(database, {} as Envelope);
  const operator = { userId: null, credentialId: null, address: null };
  await endpoints.remove({ spaceId: user.spaceId, id: endpoint.id }, operator);
  await waitFor('the sweep', async () => {
    const sql = 'SELECT id FROM webhook_deliveries WHERE endpoint_id = ?';
    return (await database.pool.query<RowDataPacket[]>(sql, [endpoint.id]))[0].length === 0;
  });
});

test('An endpoint for which too many deliveries wait is disabled, and says so', async () => {
  const endpoint = await make();
  receiver.answerWith(429, { 'retry-after': '3600' });
  await ping(endpoint);
  await waitFor('the first attempt', () => receiver.received.length > 0);
  for (const id of ['run.ended:4', 'run.ended:5']) await note({ id, type: 'run.ended', data: {} });
  const { database } = product.environment;
  expect(await disableWhenFull(database, endpoint.id, 3)).toBe(false);
  expect(await disableWhenFull(database, endpoint.id, 2)).toBe(true);
  expect(await send('GET', `/${endpoint.id}`)).toMatchObject({ enabled: false, disabled: { code: 'BACKLOG' } });
  const { data } = await send<{ data: Delivery[] }>('GET', `/${endpoint.id}/deliveries`);
  const events = data.filter(({ type }) => type === 'run.ended');
  for (const event of events) expect(await ended(event)).toMatchObject({ lastError: 'ENDPOINT_DISABLED' });
  expect(events).toHaveLength(2);
});

test('Both secrets sign during a rotation, and the previous one can be revoked at once', async () => {
  const endpoint = await make();
  const renewed = await send<{ secret: string }>('POST', `/${endpoint.id}/secret`, {});
  await ended(await ping(endpoint));
  const [both] = receiver.received as [Received];
  expect(both.headers['webhook-signature']).toBe(
    [renewed.secret, endpoint.secret].map((secret) => signatureOf(both, secret)).join(' '),
  );
  expect(await refusal('POST', `/${endpoint.id}/secret`, {})).toEqual([409, 'SECRET_RENEWED_LATELY']);
  const last = await send<{ secret: string }>('POST', `/${endpoint.id}/secret`, { revokePrevious: true });
  await ended(await ping(endpoint));
  const one = receiver.received[1] as Received;
  expect(one.headers['webhook-signature']).toBe(signatureOf(one, last.secret));
});

test('The same idempotency key makes one endpoint, one ping and one replay', async () => {
  const headers = { 'idempotency-key': 'once' };
  const body = { url: receiver.url };
  const [one, two] = [await send<Endpoint>('POST', '', body, headers), await send('POST', '', body, headers)];
  expect(two).toEqual(one);
  const tried = () => send<Delivery>('POST', `/${one.id}/ping`, undefined, headers);
  const delivery = await tried();
  expect((await tried()).id).toBe(delivery.id);
  await ended(delivery);
  const again = () => send('POST', `/${one.id}/deliveries/${delivery.id}/replay`, undefined, headers);
  await again();
  await ended(delivery);
  await again();
  const other = await make();
  const reused = await user.fetch(`${root}/${other.id}/ping`, { method: 'POST', headers });
  expect([reused.status, await reused.json()]).toEqual([
    422,
    expect.objectContaining({ code: 'IDEMPOTENCY_KEY_REUSED' }),
  ]);
  expect(await see(delivery)).toMatchObject({ status: 'delivered' });
  expect(receiver.received).toHaveLength(2);
});

test('A replay that is asked for again after a lost answer is the same replay', async () => {
  const endpoint = await make();
  const delivery = await ping(endpoint);
  await ended(delivery);
  receiver.answerWith(429, { 'retry-after': '3600' });
  const headers = { 'idempotency-key': 'lost' };
  const replay = () => send<Delivery>('POST', `/${endpoint.id}/deliveries/${delivery.id}/replay`, undefined, headers);
  await replay();
  await loseAnswer('replayWebhookDelivery', 'lost');
  expect(await replay()).toMatchObject({ id: delivery.id, status: 'pending' });
  expect(await refusal('POST', `/${endpoint.id}/deliveries/${delivery.id}/replay`)).toEqual([409, 'DELIVERY_PENDING']);
});

test('Bad URLs and events, a replay of a pending delivery, and too many endpoints are refused', async () => {
  const invalid = [422, 'WEBHOOK_URL_INVALID'];
  for (const url of ['http://example.com/', 'https://10.1.2.3/', 'https://localhost/', 'ftp://a.example', 'x']) {
    expect(await refusal('POST', '', { url })).toEqual(invalid);
  }
  expect(await refusal('POST', '', { url: `http://me:secret@${receiver.host}/` })).toEqual(invalid);
  for (const odd of ['\u001b[2J', '\u202Egnp']) {
    expect(await refusal('POST', '', { url: `${receiver.url}${odd}` })).toEqual(invalid);
  }
  expect(await refusal('POST', '', { url: receiver.url, events: ['nothing'] })).toEqual([400, 'INVALID_REQUEST']);
  const endpoint = await make();
  expect(await refusal('PATCH', `/${endpoint.id}`, { url: 'https://169.254.169.254/' })).toEqual(invalid);
  receiver.answerWith(500);
  const delivery = await ping(endpoint);
  expect(await refusal('POST', `/${endpoint.id}/deliveries/${delivery.id}/replay`)).toEqual([409, 'DELIVERY_PENDING']);
  for (let count = 1; count < 20; count++) await make();
  expect(await refusal('POST', '', { url: receiver.url })).toEqual([422, 'TOO_MANY_WEBHOOK_ENDPOINTS']);
});

test('404 for strangers, and for the deliveries of a deleted endpoint', async () => {
  const endpoint = await make();
  const delivery = await ping(endpoint);
  const stranger = await product.user();
  expect((await refusal('GET', `/${endpoint.id}`, undefined, stranger))[0]).toBe(404);
  // Also by way of a space of their own.
  const elsewhere = `/api/spaces/${stranger.spaceId}/webhook-endpoints/${endpoint.id}`;
  expect((await stranger.fetch(elsewhere)).status).toBe(404);
  const replay = `${elsewhere}/deliveries/${delivery.id}/replay`;
  expect((await stranger.fetch(replay, { method: 'POST' })).status).toBe(404);
  await send('DELETE', `/${endpoint.id}`);
  expect(await refusal('GET', `/${endpoint.id}/deliveries`)).toEqual([404, 'NOT_FOUND']);
  const { pool } = product.environment.database;
  await waitFor('the deliveries to be forgotten', async () => {
    const [rows] = await pool.query('SELECT id FROM webhook_deliveries WHERE endpoint_id = ?', [endpoint.id]);
    return (rows as unknown[]).length === 0;
  });
});
