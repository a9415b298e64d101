import { Writable } from 'node:stream';
import express from 'express';
import { pino } from 'pino';
import request from 'supertest';
import { accessLog } from '../../../api/frame/middleware/accessLog.ts';
import { requestId } from '../../../api/frame/middleware/requestId.ts';
import { allowedOrigins } from '../../../api/frame/origins.ts';
import { openEventStream } from '../../../api/frame/sse.ts';
import { loadConfig } from '../../../config/index.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildUser } from '../../builders/identity.ts';

let api: TestApi;
const lines: string[] = [];
const sink = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });

beforeAll(async () => {
  api = await buildApi({ ATRIUM_CORS_ORIGINS: 'https://app.example, https://two.example' }, { logger: pino(sink) });
});
afterAll(() => api.close());
beforeEach(() => void lines.splice(0));

test('A harmless request id is kept, and any other is replaced', async () => {
  const idFor = async (id: string) => (await api.as().get('/healthz').set('x-request-id', id)).headers['x-request-id'];
  expect(await idFor('abc-1.2_3')).toBe('abc-1.2_3');
  for (const id of ['with space', '{"a":1}', 'x'.repeat(129)]) expect(await idFor(id)).toMatch(/^[0-9a-f-]{36}$/);
});

test('The log names the operation and the user, and has no credential and no query', async () => {
  const { user, token } = await buildUser(api.identity);
  await api.as(token).get('/api/spaces?cursor=query-canary').set('cookie', 'cookie-canary');
  await api.as(token).get('/api/spaces/spc_123');
  await api.as().get('/invitations/path-canary?token=query-canary');
  const text = lines.join('');
  expect(text).not.toMatch(/canary/);
  expect(text).not.toContain(token);
  expect(lines.map((line) => JSON.parse(line)).find((line) => line.request.operationId === 'getSpace')).toMatchObject({
    requestId: expect.stringMatching(/\S/),
    request: { method: 'GET', path: '/api/spaces/{spaceId}', spaceId: 'spc_123', userId: user.id },
    status: 404,
    durationMs: expect.any(Number),
  });
});

test('The log line of a request that streams a turn has the id of the turn', async () => {
  const app = express().use(requestId(), accessLog(pino(sink)));
  app.post('/stream', (_req, res) => {
    res.set('x-frame-options', 'DENY');
    openEventStream(res, { turnId: 'trn_1', threadId: 'thr_1' });
    res.end();
  });
  await request(app).post('/stream').send();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ request: { turnId: 'trn_1' } }]);
});

test('Every answer forbids scripts, frames and caching, and none names the framework', async () => {
  const { token } = await buildUser(api.identity);
  const refused = await api.as().get('/api/me');
  const absent = await api.as().get('/absent');
  const answered = await api.as(token).get('/api/me');
  const posted = await api.as(token).post('/auth/codes');
  expect([refused, absent, answered, posted].map(({ status }) => status)).toEqual([401, 404, 200, 201]);
  for (const { headers } of [refused, absent, answered, posted]) {
    expect(headers).toMatchObject({
      'content-security-policy': "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': 'max-age=31536000; includeSubDomains',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    expect(headers['x-powered-by']).toBeUndefined();
  }
});

test('The log has each refusal with its code and the address: of a credential, a role, and an input', async () => {
  const { token } = await buildUser(api.identity);
  await api.as('atr_wrong').get('/api/me');
  await api.as(token).get('/api/spaces/spc_absent');
  await api.as(token).post('/api/spaces').send({ name: 7 });
  const refusals = lines.map((line) => JSON.parse(line)).filter(({ code }) => code !== undefined);
  expect(refusals.map(({ status, code }) => [status, code])).toEqual([
    [401, expect.any(String)],
    [404, expect.any(String)],
    [400, 'INVALID_REQUEST'],
  ]);
  for (const {
    request: { address },
  } of refusals)
    expect(address).toMatch(/127\.0\.0\.1$/);
});

describe('CORS', () => {
  const preflight = (origin: string) =>
    request(api.app)
      .options('/chat/stream')
      .set('origin', origin)
      .set('access-control-request-method', 'POST')
      .set('access-control-request-headers', 'authorization, content-type');

  test('A configured origin is let in, and its scripts can read the headers that they need', async () => {
    const { status, headers } = await preflight('https://two.example');
    expect([status, headers['access-control-allow-origin']]).toEqual([204, 'https://two.example']);
    expect(headers['access-control-allow-headers']).toBe('authorization, content-type');
    const response = await api.as().get('/healthz').set('origin', 'https://app.example');
    const exposed = response.headers['access-control-expose-headers'];
    for (const name of ['x-turn-id', 'etag', 'content-range', 'retry-after', 'link']) expect(exposed).toContain(name);
  });

  test('Other origins are not let in', async () => {
    expect((await preflight('https://evil.example')).headers['access-control-allow-origin']).toBeUndefined();
    const response = await api.as().get('/healthz').set('origin', 'https://two.example.evil.example');
    expect(response.headers['access-control-allow-origin']).toBeUndefined();
    expect((await preflight('http://localhost:5173')).headers['access-control-allow-origin']).toBeUndefined();
  });

  test('OPTIONS gives the methods of an operation to every origin', async () => {
    for (const origin of [undefined, 'https://two.example', 'https://evil.example']) {
      const { status, headers } = await request(api.app)
        .options('/api/spaces')
        .set(origin === undefined ? {} : { origin });
      expect([status, headers.allow]).toEqual([204, 'HEAD, GET, POST, OPTIONS']);
    }
  });

  test('A refused origin is in the log once, with the name of the setting', async () => {
    for (let times = 0; times < 3; times++) await preflight('https://told.example');
    const told = lines.filter((line) => line.includes('https://told.example'));
    expect(told).toEqual([expect.stringContaining('ATRIUM_CORS_ORIGINS')]);
  });

  test.each([
    ['http://localhost:5173', true],
    ['http://127.0.0.1:3000', true],
    ['http://[::1]:3000', true],
    ['https://app.example', true],
    ['http://localhost.evil.example', false],
    ['http://port.localhost:8080', false],
    ['https://two.example', false],
    ['null', false],
  ])('In development, the origin %s is allowed: %s', (origin, isAllowed) => {
    const { http } = loadConfig({
      ATRIUM_ENV: 'development',
      ATRIUM_DATABASE_URL: 'mysql://user:password@127.0.0.1/atrium',
      ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:7233',
      ATRIUM_CORS_ORIGINS: 'https://app.example',
    });
    expect(allowedOrigins(http)(origin)).toBe(isAllowed);
  });
});

test('a scheme other than bearer does not count as a credential', async () => {
  const { token } = await buildUser(api.identity);
  for (const header of [`Basic ${token}`, token, 'Bearer', 'Bearer ', `Bearer  ${token} x`, `bearerx ${token}`]) {
    const response = await request(api.app).get('/api/me').set('authorization', header);
    expect(response.status).toBe(401);
  }
  // RFC 9110: the scheme's case does not matter.
  expect((await request(api.app).get('/api/me').set('authorization', `bEaReR ${token}`)).status).toBe(200);
});
