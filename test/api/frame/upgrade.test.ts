import { once } from 'node:events';
import net from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { type ClientOptions, WebSocket } from 'ws';
import { createApp } from '../../../api/frame/app.ts';
import { type ConnectionLimits, connectionLimits } from '../../../api/frame/connectionLimits.ts';
import { loadContract } from '../../../api/frame/contract.ts';
import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { areas } from '../../../api/registry.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { echoArea, echoContract } from '../../builders/echoArea.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

const contract = loadContract({ 'echo.yaml': echoContract });
const { area, opened } = echoArea();
const surface = (limits: Partial<ConnectionLimits> = {}) => ({
  contract,
  areas: [...areas, area],
  connectionLimits: { ...connectionLimits, authorizationIntervalMs: 50, ...limits },
});
const lines: string[] = [];
const logger = pino(new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) }));
const servers: RunningApi[] = [];
let api: TestApi;
let url: string;

beforeAll(async () => {
  api = await buildApi({ ATRIUM_CORS_ORIGINS: 'https://app.example' }, { logger });
  ({ url } = await start());
});
afterEach(() => {
  opened.splice(0);
  lines.splice(0);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close({ graceMs: 0 })));
  await api.close();
});

async function start(limits: Partial<ConnectionLimits> = {}, rateLimitPerMinute = 0): Promise<RunningApi> {
  const { config } = api.deps;
  const http = { ...config.http, port: 0, rateLimitPerMinute };
  const server = await startApi({ ...api.deps, config: { ...config, http } }, surface(limits));
  servers.push(server);
  return server;
}

async function buildEditor() {
  const [owner, editor] = [await buildUser(api.identity), await buildUser(api.identity)];
  const { space } = await buildSpace(api.identity, owner.user.id);
  await api.identity.members.add(space.id, editor.user.email, 'editor');
  return { owner, editor, space, path: `/api/spaces/${space.id}/echo/a?times=2` };
}

function connect(path: string, token?: string, options: ClientOptions & { at?: string; protocols?: string[] } = {}) {
  const { at = url, protocols = ['atrium', ...(token === undefined ? [] : [`bearer.${token}`])], ...rest } = options;
  return new WebSocket(at.replace('http', 'ws') + path, protocols, rest);
}

async function open(path: string, token?: string, options: Parameters<typeof connect>[2] = {}): Promise<WebSocket> {
  const socket = connect(path, token, options);
  await once(socket, 'open');
  return socket;
}

/** The HTTP answer of a server that does not upgrade. */
async function refusal(path: string, token?: string, options: Parameters<typeof connect>[2] = {}) {
  const socket = connect(path, token, options);
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, import('node:http').IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  const { code } = JSON.parse(text) as { code: string };
  return { said: `${response.statusCode} ${code}`, type: response.headers['content-type'], headers: response.headers };
}

const closeOf = async (socket: WebSocket) => (await once(socket, 'close'))[0] as number;
const heard = async (socket: WebSocket) => String((await once(socket, 'message'))[0]);

describe('Before the upgrade', () => {
  test('A credential among the subprotocols or in the header opens a connection', async () => {
    const { editor, path } = await buildEditor();
    const fromBrowser = await open(path, editor.token, { origin: 'https://app.example' });
    expect(fromBrowser.protocol).toBe('atrium');
    fromBrowser.send('ab');
    expect(await heard(fromBrowser)).toBe('abab');
    const headers = { authorization: `Bearer ${editor.token}` };
    const fromProgram = await open(path, undefined, { protocols: [], headers });
    fromProgram.send(Buffer.from([1, 2]));
    expect((await once(fromProgram, 'message'))[0]).toEqual(Buffer.from([1, 2]));
    expect(opened).toMatchObject([{ userId: editor.user.id, times: 2 }, { userId: editor.user.id }]);
    const { key } = await api.identity.keys.create(editor.user.id, { name: 'key', scopes: ['chat'] });
    const fromKey = await open(path, key);
    for (const socket of [fromBrowser, fromProgram, fromKey]) socket.terminate();
  });

  test('a refusal is an HTTP answer, as for any request', async () => {
    const { owner, editor, space, path } = await buildEditor();
    const [viewer, stranger] = [await buildUser(api.identity), await buildUser(api.identity)];
    await api.identity.members.add(space.id, viewer.user.email, 'viewer');
    const { key } = await api.identity.keys.create(editor.user.id, { name: 'key', scopes: ['keys'] });
    const answers = {
      nobody: await refusal(path),
      'a wrong token': await refusal(path, 'wrong'),
      'a key without the scope': await refusal(path, key),
      'a stranger': await refusal(path, stranger.token),
      'a viewer': await refusal(path, viewer.token),
      'no query': await refusal(path.replace('?times=2', ''), owner.token),
      'a bad query': await refusal(path.replace('times=2', 'times=10'), owner.token),
      'another parameter': await refusal(`${path}&more=1`, owner.token),
      'a bad path parameter': await refusal(path.replace('/a?', `/${'a'.repeat(21)}?`), owner.token),
      'a wrong path': await refusal(`${path.replace('?', '/b?')}`, owner.token),
      'what is not there': await refusal(path.replace('/a?', '/absent?'), owner.token),
      'another origin': await refusal(path, owner.token, { origin: 'https://evil.example' }),
      'an opaque origin': await refusal(path, owner.token, { origin: 'null' }),
      'another subprotocol': await refusal(path, owner.token, { protocols: ['other', `bearer.${owner.token}`] }),
    };
    expect(Object.fromEntries(Object.entries(answers).map(([who, { said }]) => [who, said]))).toEqual({
      nobody: '401 NOT_AUTHENTICATED',
      'a wrong token': '401 INVALID_TOKEN',
      'a key without the scope': '403 INSUFFICIENT_SCOPE',
      'a stranger': '404 NOT_FOUND',
      'a viewer': '403 ROLE_TOO_LOW',
      'no query': '400 INVALID_REQUEST',
      'a bad query': '400 INVALID_REQUEST',
      'another parameter': '400 INVALID_REQUEST',
      'a bad path parameter': '400 INVALID_REQUEST',
      'a wrong path': '404 NOT_FOUND',
      'what is not there': '404 NOT_FOUND',
      'another origin': '403 ORIGIN_NOT_ALLOWED',
      'an opaque origin': '403 ORIGIN_NOT_ALLOWED',
      'another subprotocol': '400 SUBPROTOCOL_UNKNOWN',
    });
    for (const { type } of Object.values(answers)) expect(type).toContain('application/problem+json');
    expect(answers.nobody.headers).toMatchObject({ connection: 'close', 'www-authenticate': 'Bearer realm="atrium"' });
    expect(opened).toEqual([]);
  });

  test('A plain request gets 426, a broken handshake 400, and other operations ignore an upgrade', async () => {
    const { editor, path } = await buildEditor();
    const headers = { authorization: `Bearer ${editor.token}` };
    const plain = await fetch(url + path, { headers });
    expect([plain.status, plain.headers.get('upgrade')]).toEqual([426, 'websocket']);
    expect(await plain.json()).toMatchObject({ code: 'UPGRADE_REQUIRED' });
    const withoutKey = await answerTo(path, { ...headers, upgrade: 'websocket' });
    expect(withoutKey).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*"code":"BAD_HANDSHAKE"/s);
    // An operation without an upgrade answers as usual.
    expect((await answerTo(`/api/me`, { ...headers, upgrade: 'websocket' })).split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
    expect((await answerTo(`/healthz`, { upgrade: 'h2c' })).split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
  });

  test('Requests to connect count like other requests, and the number of open connections is limited', async () => {
    const { editor, path } = await buildEditor();
    const { url: at } = await start({ perUser: 2 }, 4);
    const [first] = [await open(path, editor.token, { at }), await open(path, editor.token, { at })];
    expect((await refusal(path, editor.token, { at })).said).toBe('429 TOO_MANY_CONNECTIONS');
    const isClosed = new Promise<void>((resolve) =>
      opened[0]?.connection.closed.addEventListener('abort', () => resolve()),
    );
    first?.close();
    await isClosed;
    const again = await open(path, editor.token, { at });
    expect(again.readyState).toBe(WebSocket.OPEN);
    const { said, headers } = await refusal(path, editor.token, { at });
    expect([said, headers['ratelimit-remaining']]).toEqual(['429 RATE_LIMITED', '0']);
  });
});

describe('An open connection', () => {
  test('A revoked session closes the connection', async () => {
    const { editor, path } = await buildEditor();
    const socket = await open(path, editor.token);
    const [session] = (await api.identity.sessions.list(editor.user.id, { limit: 1 })).data;
    await api.identity.sessions.revoke(editor.user.id, session?.id ?? '', {
      userId: editor.user.id,
      credentialId: null,
      address: null,
    });
    expect(await closeOf(socket)).toBe(4401);
  });

  test('a peer that does not answer the close is cut', async () => {
    const { editor, space, path } = await buildEditor();
    const { url: at } = await start({ closeTimeoutMs: 100 });
    const socket = await open(path, editor.token, { at });
    socket.pause();
    const [{ connection }] = opened as [(typeof opened)[0]];
    const isClosed = once(connection.closed, 'abort');
    await api.identity.members.remove(space.id, editor.user.id, { userId: null, credentialId: null, address: null });
    await isClosed;
    expect(connection.send('still there?')).toBe(false);
    socket.terminate();
  });

  test('A member who is removed, or gets a lower role, loses the connection', async () => {
    const { editor, space, path, owner } = await buildEditor();
    const [removed, kept] = [await open(path, editor.token), await open(path, owner.token)];
    await api.identity.members.remove(space.id, editor.user.id);
    expect(await closeOf(removed)).toBe(4403);
    const other = await buildUser(api.identity);
    await api.identity.members.add(space.id, other.user.email, 'editor');
    const lowered = await open(path, other.token);
    await api.identity.members.changeRole(space.id, other.user.id, 'viewer');
    expect(await closeOf(lowered)).toBe(4403);
    expect(kept.readyState).toBe(WebSocket.OPEN);
    kept.terminate();
  });

  test('A flood of messages, a message that is too large, and a failure each end a connection with their code', async () => {
    const { editor, path } = await buildEditor();
    const { url: at } = await start({ messagesAtOnce: 5, messagesPerSecond: 0, maxMessageBytes: 1_000 });
    const connectHere = () => open(path, editor.token, { at });
    const flood = await connectHere();
    const echoes: string[] = [];
    flood.on('message', (data) => echoes.push(String(data)));
    for (let i = 0; i < 20; i++) flood.send('x');
    expect(await closeOf(flood)).toBe(4429);
    expect(echoes).toEqual(['xx', 'xx', 'xx', 'xx', 'xx']);
    const large = await connectHere();
    large.send('x'.repeat(1_001));
    expect(await closeOf(large)).toBe(1009);
    const failing = await connectHere();
    failing.send('fail');
    expect(await closeOf(failing)).toBe(1011);
    expect(lines.join('')).toContain('A connection failed.');
  });

  test('A reader that takes nothing is cut, and one that catches up is waited for', async () => {
    const { editor, path } = await buildEditor();
    const { url: at } = await start({ maxBacklogBytes: 1024 * 1024 });
    const piece = Buffer.alloc(256 * 1024);
    const [slow, quick] = [await open(path, editor.token, { at }), await open(path, editor.token, { at })];
    slow.pause();
    const [toSlow, toQuick] = opened.map(({ connection }) => connection);
    // The kernel buffers a few megabytes.
    while (toSlow?.closed.aborted === false) {
      toSlow.send(piece);
      await new Promise(setImmediate);
    }
    let received = 0;
    quick.on('message', (data: Buffer) => {
      received += data.length;
    });
    for (let i = 0; i < 64; i++) if (toQuick?.send(piece) === false) await toQuick.drained();
    toQuick?.close(1000);
    expect([await closeOf(quick), received]).toEqual([1000, 64 * piece.length]);
    slow.terminate();
  });

  test('A peer that answers no ping is cut, and one that answers stays', async () => {
    const { editor, path } = await buildEditor();
    const { url: at } = await start({ pingIntervalMs: 100 });
    const alive = await open(path, editor.token, { at });
    const pings = once(alive, 'ping')
      .then(() => once(alive, 'ping'))
      .then(() => once(alive, 'ping'));
    const dead = await open(path, editor.token, { at, autoPong: false });
    expect(await closeOf(dead)).toBe(1006);
    await pings;
    expect(alive.readyState).toBe(WebSocket.OPEN);
    alive.terminate();
  });
});

test('a closing server says so, waits for its clients, and cuts those that stay', async () => {
  const { editor, path } = await buildEditor();
  const server = await start();
  const [polite, stubborn] = [
    await open(path, editor.token, { at: server.url }),
    await open(path, editor.token, { at: server.url }),
  ];
  stubborn.pause();
  const closes = closeOf(polite);
  const closed = server.close({ graceMs: 500 });
  expect(await closes).toBe(1001);
  await closed;
  stubborn.resume();
  expect([1001, 1006]).toContain(await closeOf(stubborn));
});

test('Each connection has one line in the log when it ends, without a credential', async () => {
  const { editor, space, path } = await buildEditor();
  const socket = await open(path, editor.token, { headers: { 'x-request-id': 'mine' } });
  const isClosed = closeOf(socket);
  socket.close(4000);
  await isClosed;
  await refusal(path, 'refused-canary');
  await new Promise<void>((resolve) => {
    const look = () => (lines.filter((line) => line.includes(space.id)).length < 2 ? setImmediate(look) : resolve());
    look();
  });
  expect(lines.join('')).not.toMatch(/canary|bearer/);
  expect(lines.join('')).not.toContain(editor.token);
  type Entry = { requestId: string; status: number; request: { spaceId: string } };
  const entries = lines.map((line) => JSON.parse(line) as Entry).filter(({ request }) => request?.spaceId === space.id);
  expect(entries.find(({ status }) => status === 101)).toMatchObject({
    requestId: 'mine',
    status: 101,
    closeCode: 4000,
    durationMs: expect.any(Number),
    request: {
      operationId: 'openEcho',
      path: '/api/spaces/{spaceId}/echo/{name}',
      spaceId: space.id,
      userId: editor.user.id,
    },
  });
  expect(entries).toHaveLength(2);
});

test('The contract and the areas must agree about upgrades', () => {
  const app = (more: Record<string, string>, given: (typeof areas)[number][] | (typeof area)[]) => () =>
    createApp(api.deps, { contract: loadContract(more), areas: [...areas, ...given] });
  expect(app({ 'echo.yaml': echoContract }, [{ ...area, upgrades: {} }])).toThrow('No area takes the upgrade openEcho');
  expect(app({ 'echo.yaml': echoContract.replace('x-upgrade: websocket', '') }, [area])).toThrow(
    'does not mark openEcho',
  );
  expect(app({ 'echo.yaml': echoContract }, [{ ...area, access: {} }])).toThrow('has a row for openEcho');
  expect(app({}, [])).not.toThrow();
});

/** The answer of a server, up to the end of the connection. */
function answerTo(path: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname);
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
      socket.end();
    });
    socket.on('close', () => resolve(text)).on('error', reject);
    const sent = { host: 'localhost', connection: 'Upgrade', 'sec-websocket-version': '13', ...headers };
    const named = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${path} HTTP/1.1\r\n${named.join('')}\r\n`);
  });
}
