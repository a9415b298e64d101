import request from 'supertest';
import { addressOf } from '../../../api/frame/middleware/rateLimits.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildUser } from '../../builders/identity.ts';

let api: TestApi;
let behindProxy: TestApi;
const limits = { ATRIUM_RATE_LIMIT_PER_MINUTE: '5', ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '20' };

beforeAll(async () => {
  api = await buildApi(limits);
  behindProxy = await buildApi({ ...limits, ATRIUM_TRUST_PROXY: '1' });
});
afterAll(async () => {
  await api.close();
  await behindProxy.close();
});

test('a caller past the limit gets 429 and Retry-After; another caller does not', async () => {
  const [one, two] = [await buildUser(api.identity), await buildUser(api.identity)];
  const first = await api.as(one.token).get('/api/me');
  expect(first.headers).toMatchObject({ 'ratelimit-limit': '5', 'ratelimit-remaining': '4' });
  for (let i = 0; i < 4; i++) await api.as(one.token).get('/api/me');
  const refused = await api.as(one.token).get('/api/me');
  expect([refused.status, refused.body.code]).toEqual([429, 'RATE_LIMITED']);
  expect(refused.headers['ratelimit-remaining']).toBe('0');
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(refused.body.retryAfter).toBe(Number(refused.headers['retry-after']));
  expect((await api.as(two.token).get('/api/me')).status).toBe(200);
});

test('A caller past the limit can still end sessions that take memory', async () => {
  const { token } = await buildUser(api.identity);
  const caller = api.as(token);
  for (let i = 0; i < 6; i++) await caller.get('/api/me');
  expect((await caller.get('/api/me')).status).toBe(429);
  expect((await caller.delete('/api/spaces/spc_1/browsers/sessions/brs_1')).status).toBe(404);
  expect((await caller.delete('/api/spaces/spc_1/computers/cmp_1/desktop/sessions/dsk_1')).status).toBe(404);
});

test('a user’s session and API keys share one limit', async () => {
  const { user, token } = await buildUser(api.identity);
  const { key } = await api.identity.keys.create(user.id, { name: 'k' });
  const statuses = [];
  for (const credential of [token, key, token, key, token, key]) {
    statuses.push((await api.as(credential).get('/api/me')).status);
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test('Of fifty wrong codes with forged addresses, only ten are tried', async () => {
  const statuses = [];
  for (let i = 0; i < 50; i++) {
    const response = await request(api.app)
      .post('/auth/exchange-code')
      .set('x-forwarded-for', `203.0.113.${i}`)
      .set('forwarded', `for=203.0.113.${i}`)
      .set('x-real-ip', `203.0.113.${i}`)
      .send({ code: `WRONG-${i}` });
    statuses.push(response.status);
  }
  expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
  expect(statuses.slice(10)).toEqual(Array(40).fill(429));
});

test('Simultaneous guesses do not slip through, and correct codes do not count', async () => {
  const from = (address: string, code: string) =>
    request(behindProxy.app).post('/auth/exchange-code').set('x-forwarded-for', address).send({ code });
  const { user } = await buildUser(behindProxy.identity);
  const wrong = await Promise.all(Array.from({ length: 15 }, (_, i) => from('198.51.100.1', `WRONG-${i}`)));
  expect(wrong.filter(({ status }) => status === 401)).toHaveLength(10);
  for (let i = 0; i < 12; i++) {
    const { code } = await behindProxy.identity.codes.create(user.id);
    expect((await from('198.51.100.2', code)).status).toBe(200);
  }
});

test('Behind one trusted proxy, the address that the proxy saw counts', async () => {
  const send = (forwarded: string) =>
    request(behindProxy.app).post('/auth/exchange-code').set('x-forwarded-for', forwarded).send({ code: 'WRONG' });
  for (let i = 0; i < 10; i++) await send(`10.0.0.${i}, 198.51.100.9`);
  expect((await send('10.9.9.9, 198.51.100.9')).status).toBe(429);
  expect((await send('10.0.0.1, 198.51.100.10')).status).toBe(401);
});

test('guessed credentials count against their address', async () => {
  const send = () =>
    request(behindProxy.app)
      .get('/api/me')
      .set('x-forwarded-for', '198.51.100.20')
      .set('authorization', 'Bearer x.y.z');
  const statuses = [];
  for (let i = 0; i < 22; i++) statuses.push((await send()).status);
  expect(statuses).toEqual([...Array(20).fill(401), 429, 429]);
});

test('Probes are not limited', async () => {
  for (let i = 0; i < 30; i++) {
    expect((await behindProxy.as().get('/healthz').set('x-forwarded-for', '198.51.100.30')).status).toBe(200);
  }
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::9', '2001:db8:1:2'],
  ['2001:db8::9', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
])('the address %s counts as %s', (ip, expected) => {
  expect(addressOf({ ip } as never)).toBe(expected);
});
