import { Writable } from 'node:stream';
import { pino } from 'pino';
import request from 'supertest';
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

test('a request id is taken over where it is harmless, and replaced where it is not', async () => {
  const idFor = async (id: string) => (await api.as().get('/healthz').set('x-request-id', id)).headers['x-request-id'];
  expect(await idFor('abc-1.2_3')).toBe('abc-1.2_3');
  for (const id of ['with space', '{"a":1}', 'x'.repeat(129)]) expect(await idFor(id)).toMatch(/^[0-9a-f-]{36}$/);
});

test('the log names the operation and who, and holds no credential and no query', async () => {
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

test('security headers are there, and nothing names the framework', async () => {
  const { headers } = await api.as().get('/api/me');
  expect(headers).toMatchObject({
    'content-security-policy': "default-src 'none'",
    'x-content-type-options': 'nosniff',
    'strict-transport-security': expect.any(String),
  });
  expect(headers['x-powered-by']).toBeUndefined();
});

describe('CORS', () => {
  const preflight = (origin: string) =>
    request(api.app)
      .options('/chat/stream')
      .set('origin', origin)
      .set('access-control-request-method', 'POST')
      .set('access-control-request-headers', 'authorization, content-type');

  test('lets a configured origin in, and shows its scripts the headers they need', async () => {
    const { status, headers } = await preflight('https://two.example');
    expect([status, headers['access-control-allow-origin']]).toEqual([204, 'https://two.example']);
    expect(headers['access-control-allow-headers']).toBe('authorization, content-type');
    const response = await api.as().get('/healthz').set('origin', 'https://app.example');
    expect(response.headers['access-control-expose-headers']).toContain('x-turn-id');
  });

  test('and no other', async () => {
    expect((await preflight('https://evil.example')).headers['access-control-allow-origin']).toBeUndefined();
    const response = await api.as().get('/healthz').set('origin', 'https://two.example.evil.example');
    expect(response.headers['access-control-allow-origin']).toBeUndefined();
  });
});

test('a scheme other than bearer is no credential', async () => {
  const { token } = await buildUser(api.identity);
  for (const header of [`Basic ${token}`, token, 'Bearer', 'Bearer ', `Bearer  ${token} x`, `bearerx ${token}`]) {
    const response = await request(api.app).get('/api/me').set('authorization', header);
    expect(response.status).toBe(401);
  }
  // RFC 9110: the scheme's case does not matter.
  expect((await request(api.app).get('/api/me').set('authorization', `bEaReR ${token}`)).status).toBe(200);
});
