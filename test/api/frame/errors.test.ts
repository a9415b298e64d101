import { once } from 'node:events';
import type http from 'node:http';
import net from 'node:net';
import { Writable } from 'node:stream';
import express from 'express';
import { pino } from 'pino';
import request from 'supertest';
import { errorHandler } from '../../../api/frame/errors.ts';
import { goneOf } from '../../../api/frame/goneOf.ts';
import { DomainError } from '../../../base/errors.ts';
import { openDatabase } from '../../../models/database/database.ts';
import { createIdentity, openEnvelope } from '../../../models/identity/index.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;
let token: string;

beforeAll(async () => {
  api = await buildApi();
  ({ token } = await buildUser(api.identity));
});
afterAll(() => api.close());

const post = (path = '/api/spaces') => request(api.app).post(path).set('authorization', `Bearer ${token}`);

const nested = (levels: number) => `{"name":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

describe('a client’s mistake is a 4xx in problem+json that says what is wrong', () => {
  const json = 'application/json';
  test.each([
    ['malformed JSON', () => post().type(json).send('{"name":'), 400, 'INVALID_JSON'],
    ['an empty body', () => post().type(json).send(''), 400, 'INVALID_REQUEST'],
    ['a body that is not an object', () => post().type(json).send('7'), 400, 'INVALID_REQUEST'],
    ['null', () => post().type(json).send('null'), 400, 'INVALID_REQUEST'],
    ['no body at all', () => post(), 400, 'INVALID_REQUEST'],
    ['another media type', () => post().type('text/plain').send('hello'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [
      'another character set',
      () => post().set('content-type', 'application/json; charset=iso-8859-7').send('{}'),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'an unknown encoding',
      () => post().type(json).set('content-encoding', 'snappy').send('{}'),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['a broken encoding', () => post().type(json).set('content-encoding', 'gzip').send('{}'), 400, 'INVALID_BODY'],
    ['a body nested too deep', () => post().type(json).send(nested(101)), 400, 'JSON_TOO_DEEP'],
    ['a body nested beyond the stack', () => post().type(json).send(nested(200_000)), 400, 'JSON_TOO_DEEP'],
    ['a body over 1 MiB', () => post().send({ name: 'x'.repeat(1_100_000) }), 413, 'BODY_TOO_LARGE'],
    ['an unknown path', () => post('/api/nothing'), 404, 'NOT_FOUND'],
    ['a path with a slash too many', () => post('/api/spaces/'), 404, 'NOT_FOUND'],
    ['a path in capitals', () => post('/API/spaces'), 404, 'NOT_FOUND'],
    ['a bad escape in the path', () => api.as(token).get('/api/spaces/%zz'), 400, 'INVALID_PATH'],
    ['escapes that are no UTF-8', () => api.as(token).get('/api/spaces/%ff%fe'), 400, 'INVALID_PATH'],
    ['an unknown parameter', () => api.as(token).get('/api/spaces?page=2'), 400, 'INVALID_REQUEST'],
    ['a wrong parameter', () => api.as(token).get('/api/spaces?limit=0'), 400, 'INVALID_REQUEST'],
    ['a limit that is not a number', () => api.as(token).get('/api/spaces?limit=ten'), 400, 'INVALID_REQUEST'],
    ['a made-up cursor', () => api.as(token).get('/api/spaces?cursor=%21%21'), 400, 'INVALID_CURSOR'],
    ['a token in the query', () => request(api.app).get(`/api/me?access_token=${token}`), 401, 'NOT_AUTHENTICATED'],
    ['another method', () => api.as(token).delete('/api/me'), 405, 'METHOD_NOT_ALLOWED'],
  ])('%s', async (_what, send, status, code) => {
    const response = await send();
    expect([response.status, response.body.code]).toEqual([status, code]);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(response.body).toMatchObject({
      type: `urn:atrium:problem:${code.toLowerCase().replaceAll('_', '-')}`,
      title: expect.stringMatching(/\S/),
      status,
      detail: expect.stringMatching(/\S/),
      instance: expect.stringMatching(/^\//),
      requestId: response.headers['x-request-id'],
    });
    expect(JSON.stringify(response.body)).not.toMatch(/node_modules|\.ts:|SELECT/);
  });

  test('A body of 100 levels is validated like any other', async () => {
    const response = await post().type('application/json').send(nested(100));
    expect(response.body.errors).toEqual([{ pointer: '/name', detail: 'must be a string' }]);
  });

  test('An empty body counts as missing, and sets nothing back to its defaults', async () => {
    const { token: owner, user } = await buildUser(api.identity);
    const { space } = await buildSpace(api.identity, user.id);
    const path = `/api/spaces/${space.id}/egress`;
    const put = () => request(api.app).put(path).set('authorization', `Bearer ${owner}`).type('application/json');
    expect((await put().send({ deny: ['example.net'] })).status).toBe(200);
    expect((await put().send('')).body).toMatchObject({ status: 400, detail: 'The body is missing.' });
    expect((await put()).body).toMatchObject({ status: 400, detail: 'The body is missing.' });
    expect((await api.as(owner).get(path)).body.deny).toEqual(['example.net']);
  });

  test('415 for a body without a type, also where the body is optional', async () => {
    const { token: owner, user } = await buildUser(api.identity);
    const { space } = await buildSpace(api.identity, user.id);
    const make = () => request(api.app).post(`/api/spaces/${space.id}/threads`).set('authorization', `Bearer ${owner}`);
    expect((await make()).status).toBe(201);
    const untyped = await make()
      .unset('content-type')
      .serialize((body) => body)
      .send(Buffer.from('{"title":"x"}'));
    expect([untyped.status, untyped.body.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  test.each([
    ['/api/spaces?nonsense=1', 'nonsense is not a parameter of this operation.'],
    ['/api/spaces?limit=', 'limit must be an integer, in decimal digits.'],
    ['/api/spaces?cursor=', 'cursor is empty.'],
    ['/api/spaces?cursor=a/b', 'cursor contains characters that must be percent-encoded.'],
  ])('%s: %s', async (path, detail) => {
    expect((await api.as(token).get(path)).body).toMatchObject({ status: 400, code: 'INVALID_REQUEST', detail });
  });

  test('The error for a body that is too large names the limit of its operation', async () => {
    const { body: json } = await post().send({ name: 'x'.repeat(1_100_000) });
    const { body: form } = await api
      .as()
      .post('/auth/email')
      .type('form')
      .send({ email: 'x'.repeat(20_000) });
    expect([json.detail, form.detail]).toEqual(['The body is larger than 1 MiB.', 'The body is larger than 16 KiB.']);
  });

  test.each([
    [{}, '/name is required.'],
    [{ name: 'x', isAdmin: true }, '/isAdmin is not accepted here.'],
  ])('%j: %s', async (body, detail) => {
    expect((await post().send(body)).body.detail).toBe(detail);
  });

  test('Errors name a field by its JSON pointer, and a parameter by its name', async () => {
    const body = await post().send({ name: '', colour: 'red' });
    expect(body.body.errors[0].pointer).toMatch(/^\/(name|colour)$/);
    const query = await api.as(token).get('/api/spaces?limit=1000');
    expect(query.body.errors).toEqual([{ pointer: 'limit', detail: 'must be at most 200' }]);
  });

  test.each([
    ['text/plain', undefined, 'Send the body as application/json.'],
    ['application/json; charset=iso-8859-7', undefined, 'Send the body in UTF-8.'],
    ['application/json', 'snappy', 'Send the body uncompressed, or compressed with gzip, deflate or br.'],
  ])('415 says what to send instead of %s', async (type, encoding, detail) => {
    const send = post().set('content-type', type);
    if (encoding !== undefined) send.set('content-encoding', encoding);
    expect((await send.send('{}')).body.detail).toBe(detail);
  });

  test('405 names the allowed methods, and so does OPTIONS', async () => {
    const refused = await api.as(token).delete('/api/me');
    expect([refused.headers.allow, refused.body.detail]).toEqual([
      'HEAD, GET, OPTIONS',
      'This path accepts only HEAD, GET, OPTIONS.',
    ]);
    const options = await request(api.app).options('/api/spaces');
    expect([options.status, options.headers.allow]).toEqual([204, 'HEAD, GET, POST, OPTIONS']);
  });

  test('the parameters of a media type do not matter', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;a=1', 'application/json ; b="2"']) {
      expect((await post().set('content-type', type).send('{"name":"x"}')).status).toBe(201);
    }
    expect((await api.as(token).get('/api/me').set('content-type', 'text/plain')).status).toBe(200);
  });

  test('HEAD is GET without its body', async () => {
    const head = await request(api.app).head('/api/me').set('authorization', `Bearer ${token}`);
    expect([head.status, head.text]).toEqual([200, undefined]);
  });

  test('The body of a stranger is not parsed', async () => {
    const response = await request(api.app).post('/api/spaces').type('application/json').send('{"name":');
    expect(response.status).toBe(401);
  });

  test.each([
    ['GET http://[/ HTTP/1.1'],
    ['GET //evil.example/api/me HTTP/1.1'],
    ['GET * HTTP/1.1'],
    ['GET /api/me/../spaces HTTP/1.1'],
    ['BREW /api/me HTTP/1.1'],
    ['GET /healthz?a[__proto__]=1&constructor=2&a%=%zz HTTP/1.1'],
  ])('no 500 for %s', async (line) => {
    expect(await statusOf(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`)).toMatch(/^4\d\d$/);
  });
});

/** Sends raw bytes, which a client library would correct. */
async function statusOf(bytes: string): Promise<string> {
  const server = api.app.listen(0);
  try {
    const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1');
    socket.write(bytes);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    return answer.split(' ')[1] ?? '';
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('Faults of the server', () => {
  test('A 500 reveals nothing, and its cause is in the log under the request id', async () => {
    const lines: string[] = [];
    const sink = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });
    const broken = await buildApi({}, { logger: pino(sink) });
    const { token: theirs } = await buildUser(broken.identity);
    broken.identity.users.byId = async () => {
      throw Object.assign(new Error('boom at /srv/app'), { sql: 'SELECT secret', parameters: ['canary'] });
    };
    const response = await broken.as(theirs).get('/api/me').set('x-request-id', 'find-me');
    expect(response.body).toEqual({
      type: 'urn:atrium:problem:internal-error',
      title: 'Internal Server Error',
      status: 500,
      detail: 'Something went wrong on the server. An operator can find the error in the log by the request id.',
      instance: '/api/me',
      code: 'INTERNAL_ERROR',
      requestId: 'find-me',
    });
    const logged = lines.find((line) => line.includes('boom'));
    expect(JSON.parse(logged ?? '{}')).toMatchObject({ requestId: 'find-me', msg: 'INTERNAL_ERROR' });
    expect(lines.join('')).not.toMatch(/canary|SELECT secret/);
    await broken.close();
  });

  test('without its database the API answers 503, with Retry-After', async () => {
    const { environment } = api;
    const dead = openDatabase({ database: { url: 'mysql://root@127.0.0.1:1/gone', poolSize: 2, silenceMs: 5_000 } });
    const identity = createIdentity(dead, await openEnvelope(dead, environment.config), environment.config);
    const down = await buildApi({}, { database: dead, identity });
    const signedIn = await down.as(token).get('/api/me');
    const signingIn = await down.as().post('/auth/exchange-code', { code: 'K7QD-9XMR-2TWH-PZ4C' });
    for (const response of [signedIn, signingIn]) {
      expect([response.status, response.body.code]).toEqual([503, 'DATABASE_UNAVAILABLE']);
      expect(response.headers['retry-after']).toBe('2');
      expect(response.body.retryAfter).toBe(2);
    }
    const ready = await down.as().get('/readyz');
    expect([ready.status, ready.body.code, ready.body.errors]).toEqual([
      503,
      'NOT_READY',
      [{ pointer: 'database', detail: 'does not answer' }],
    ]);
    expect((await down.as().get('/healthz')).status).toBe(200);
    await down.close();
    await dead.close();
  });
});

test('An error answer that the contract does not declare becomes a 500 problem without a stack', async () => {
  const logged: string[] = [];
  const app = express();
  app.use((req, res, next) => {
    Object.assign(req, { id: 'one', log: { error: (_about: object, text: string) => logged.push(text) } });
    res.json = () => {
      throw new Error('no schema defined for status code 422');
    };
    next(new DomainError('unprocessable', 'NOT_DECLARED', 'It is refused.'));
  });
  app.use(errorHandler());
  const response = await request(app).get('/');
  expect([response.status, response.type]).toEqual([500, 'application/problem+json']);
  expect(JSON.parse(response.text)).toMatchObject({ status: 500, code: 'INTERNAL_ERROR' });
  expect(response.text).not.toContain('schema');
  expect(logged).toEqual(['An error answer is not declared.']);
});

test('an unknown host that a user asks for is a warning without a stack, and a failure behind an answer an error', async () => {
  const logged: [string, object][] = [];
  const app = express();
  app.get('/:which', (req, _res, next) => {
    const log = (level: string) => (about: object) => logged.push([level, about]);
    Object.assign(req, { id: 'one', log: { error: log('error'), warn: log('warn') } });
    const cause = req.params.which === 'own' ? new Error('connection reset') : undefined;
    next(new DomainError('upstream', 'EGRESS_UNRESOLVED', 'Its name is not known.', { cause }));
  });
  app.use(errorHandler());
  for (const path of ['/theirs', '/own']) expect((await request(app).get(path)).status).toBe(502);
  expect(logged).toEqual([
    ['warn', { requestId: 'one', reason: 'Its name is not known.' }],
    ['error', { requestId: 'one', err: expect.anything() }],
  ]);
});

test('Work that ends because its client has gone is no fault of the server', async () => {
  const logged: object[] = [];
  const handled = Promise.withResolvers<void>();
  const app = express();
  app.get('/', async (req, res) => {
    Object.assign(req, { id: 'one', log: { error: (about: object) => logged.push(about) } });
    const gone = goneOf(res);
    await new Promise((_resolve, reject) => gone.addEventListener('abort', () => reject(gone.reason)));
  });
  app.use(errorHandler());
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const client = net.connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  server.once('request', (_req, res: http.ServerResponse) => {
    res.once('close', () => setImmediate(handled.resolve));
    setImmediate(() => client.destroy());
  });
  await handled.promise;
  server.close();
  expect(logged).toEqual([]);
});
