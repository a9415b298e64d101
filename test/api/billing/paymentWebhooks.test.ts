import Stripe from 'stripe';
import { buildApi, type TestApi } from '../../builders/api.ts';

// The webhook of the payment provider and its alias: which events are accepted and which are refused.

const secrets = ['whsec_new', 'whsec_old'];
let api: TestApi;
beforeAll(async () => {
  api = await buildApi({
    ATRIUM_PAYMENTS: 'stripe',
    ATRIUM_STRIPE_SECRET_KEY: 'sk_test_x',
    ATRIUM_STRIPE_WEBHOOK_SECRETS: secrets.join(','),
  });
});
afterAll(() => api.close());

let number = 0;
const bodyOf = (fields: object = {}) =>
  // The signature covers the exact bytes, with these spaces and this order.
  `{ "type":"x.y",  "id": "evt_test_${++number}", "more": "ü" ${Object.keys(fields).length > 0 ? `, ${JSON.stringify(fields).slice(1, -1)}` : ''}}`;
const sign = (payload: string, { secret = secrets[0] ?? '', ageSeconds = 0 } = {}) =>
  Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: Math.floor(Date.now() / 1_000) - ageSeconds });

async function send(payload: string, signature?: string, path = '/api/webhooks/billing') {
  const test = api.as(undefined).post(path).set('content-type', 'application/json');
  const { status, body } = await (signature === undefined ? test : test.set('stripe-signature', signature)).send(
    payload,
  );
  return { status, body: body as { code?: string; received?: boolean } };
}

async function kept(payload: string) {
  const { id } = JSON.parse(payload) as { id: string };
  const [rows] = await api.deps.database.pool.query('SELECT payload, status FROM payment_events WHERE id = ?', [id]);
  return rows as { payload: string; status: string }[];
}

const accepted = { status: 200, body: { received: true } };
const refused = { status: 400, body: expect.objectContaining({ code: 'INVALID_SIGNATURE' }) };

test.each(['/api/webhooks/billing', '/api/webhooks/stripe'])(
  '%s keeps a signed event byte by byte and acknowledges it',
  async (path) => {
    const payload = bodyOf();
    expect(await send(payload, sign(payload), path)).toEqual(accepted);
    expect(await kept(payload)).toEqual([{ payload, status: 'received' }]);
  },
);

test.each([
  ['by the new secret', { secret: secrets[0] }],
  ['by the old one', { secret: secrets[1] }],
  ['299 seconds ago', { ageSeconds: 299 }],
  ['299 seconds ahead', { ageSeconds: -299 }],
])('An event signed %s is accepted', async (_name, how) => {
  const payload = bodyOf();
  expect(await send(payload, sign(payload, how))).toEqual(accepted);
});

const forged: [string, (payload: string) => string | undefined][] = [
  ['not signed', () => undefined],
  ['signed by somebody else', (payload) => sign(payload, { secret: 'whsec_other' })],
  ['signed 301 seconds ago', (payload) => sign(payload, { ageSeconds: 301 })],
  ['signed 302 seconds ahead', (payload) => sign(payload, { ageSeconds: -302 })],
  ['signed for other bytes', (payload) => sign(`${payload} `)],
  [
    'with a time that was not signed',
    (payload) => `t=${Math.floor(Date.now() / 1_000)},${sign(payload).split(',')[1]}`.replace('v1=', 'v1=0'),
  ],
  ['with two times', (payload) => `t=1,${sign(payload)}`],
  ['with a time that is not a number', (payload) => sign(payload).replace(/t=\d+/, 't=NaN')],
  ['with a signature that is none', () => 'nonsense'],
  ['with a signature without an end', (payload) => `${sign(payload)},${'v1=00,'.repeat(2_000)}`],
];

test.each(forged)('400 for an event %s, and nothing is kept', async (_name, signatureOf) => {
  const payload = bodyOf();
  expect(await send(payload, signatureOf(payload))).toEqual(refused);
  expect(await kept(payload)).toEqual([]);
});

test('A repeated event is acknowledged and kept once, also with other bytes under the same id', async () => {
  const payload = bodyOf();
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(payload, sign(payload))));
  expect(answers).toEqual(Array(10).fill(accepted));
  const other = payload.replace('x.y', 'y.z');
  expect(await send(other, sign(other))).toEqual(accepted);
  expect(await kept(payload)).toEqual([{ payload, status: 'received' }]);
});

test('400 for a body that is no event or no JSON, and 413 for a body that is too large', async () => {
  const noId = '{"type":"x.y"}';
  expect(await send(noId, sign(noId))).toMatchObject({ status: 400, body: { code: 'INVALID_EVENT' } });
  expect(await send('{"id":', sign('{"id":'))).toMatchObject({ status: 400 });
  const large = bodyOf({ filling: 'x'.repeat(1_100_000) });
  expect(await send(large, sign(large))).toMatchObject({ status: 413 });
  expect(await kept(large)).toEqual([]);
});

// No worker runs here, so an answer that waited for one would never come.
test('100 simultaneous events are acknowledged before any is settled', async () => {
  const payloads = Array.from({ length: 100 }, () => bodyOf());
  const answers = await Promise.all(payloads.map((payload) => send(payload, sign(payload))));
  expect(answers).toEqual(payloads.map(() => accepted));
  for (const payload of payloads) expect(await kept(payload)).toEqual([{ payload, status: 'received' }]);
});
