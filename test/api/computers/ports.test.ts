import { once } from 'node:events';
import { createServer, type IncomingMessage, request as requestHttp, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocket, WebSocketServer } from 'ws';
import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { DomainError } from '../../../base/errors.ts';
import { createLiveComputers } from '../../../bin/computers/liveComputers.ts';
import { portsConfig } from '../../../config/ports.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import type { LiveComputers, LiveHost } from '../../../integrations/computers/liveComputers.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { waitFor } from '../../support/waitFor.ts';

// Links to ports, on host names of their own. In place of a computer, this process serves the pages. The way into a
// real computer is tested in test/integrations/computers/hostServer.test.ts.

let api: TestApi;
let server: RunningApi;
let liveComputers: LiveComputers;
let app: Server;
let appPort: number;
const seen: IncomingMessage[] = [];
let isAsleep = false;
let respond: (req: IncomingMessage, res: import('node:http').ServerResponse) => void;

let filesOpened = 0;
const client = {
  async dialPort(port: number) {
    if (isAsleep) throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.');
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect').catch(() => {
      throw new DomainError('upstream', 'PORT_NOT_LISTENING', 'Nothing listens there.');
    });
    return socket;
  },
} as unknown as HostClient;
const host: LiveHost = {
  client: () => client,
  files: async () => {
    filesOpened++;
    return client;
  },
  work: () => Promise.reject(new Error('Nobody asks.')),
  metrics: () => Promise.reject(new Error('Nobody asks.')),
};

beforeAll(async () => {
  api = await buildApi({ ATRIUM_CORS_ORIGINS: 'https://app.example' });
  const { config, database, launcher } = api.deps;
  liveComputers = createLiveComputers({ database, config, launcher, hostOf: async () => host });
  server = await startApi({ ...api.deps, liveComputers, config: { ...config, http: { ...config.http, port: 0 } } });
  app = createServer((req, res) => {
    seen.push(req);
    respond(req, res);
  });
  const sockets = new WebSocketServer({ server: app });
  sockets.on('connection', (socket, req) => {
    seen.push(req);
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  app.listen(0, '127.0.0.1');
  await once(app, 'listening');
  appPort = (app.address() as AddressInfo).port;
});
beforeEach(() => {
  seen.splice(0);
  isAsleep = false;
  filesOpened = 0;
  respond = (_req, res) => res.end('hello');
});
afterAll(async () => {
  await server.close({ graceMs: 0 });
  app.closeAllConnections();
  app.close();
  await api.close();
});

async function buildOwner() {
  const owner = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, owner.user.id);
  const computer = await defaultComputer(api.environment.database, space.id);
  await becomes(computer.id, 'running');
  return { owner, space, path: `/api/spaces/${space.id}/computers/${computer.id}/ports` };
}

async function becomes(computerId: string, status: 'running' | 'paused' | 'stopped'): Promise<void> {
  const sql = "UPDATE computers SET status = ?, host_id = 'hst_test' WHERE id = ?";
  await api.environment.database.pool.query(sql, [status, computerId]);
}

type Link = { id: string; url: string; origin: string; expiresAt: string };

async function makeLink(body: object = {}) {
  const built = await buildOwner();
  const answer = await api.as(built.owner.token).post(built.path, { port: appPort, ttlSeconds: 600, ...body });
  expect(answer.status).toBe(201);
  return { ...built, link: answer.body as Link };
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  body: string;
}

/** A request to the server with another host name. */
async function visit(
  url: string,
  {
    cookie,
    method = 'GET',
    headers = {},
    body,
    at = server,
  }: { cookie?: string; method?: string; headers?: object; body?: string; at?: RunningApi } = {},
): Promise<Answer> {
  const { host, pathname, search } = new URL(url);
  const request = requestHttp({
    host: '127.0.0.1',
    port: new URL(at.url).port,
    method,
    path: pathname + search,
    headers: { host, accept: 'text/html', ...(cookie && { cookie }), ...headers },
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}

const cookieOf = ({ headers }: Answer) => (headers['set-cookie'] ?? []).map((one) => one.split(';', 1)[0]).join('; ');

/** A link, and the cookie of a browser that has opened it. */
async function admitted(body?: object) {
  const made = await makeLink(body);
  const opened = await visit(made.link.url);
  return { ...made, opened, cookie: cookieOf(opened) };
}

describe('Admitting a browser', () => {
  test('The address is exchanged once for a cookie, and leads to the served page', async () => {
    const { link, opened, cookie } = await admitted();
    expect(new URL(link.origin).hostname).toMatch(/^[a-z2-7]{26}\.localhost$/);
    expect([opened.status, opened.headers.location, opened.headers['referrer-policy']]).toEqual([
      303,
      '/',
      'no-referrer',
    ]);
    const [everywhere, lax] = opened.headers['set-cookie'] ?? [];
    expect(everywhere).toMatch(/^atrium-port=[\w-]{43}; Path=\/; HttpOnly; .*Secure; SameSite=None; Partitioned$/);
    expect(lax).toMatch(/^atrium-port-lax=.*SameSite=Lax$/);
    expect(await visit(`${link.origin}/page?a=1`, { cookie })).toMatchObject({ status: 200, body: 'hello' });
    expect(seen[0]?.url).toBe('/page?a=1');
    const again = await visit(link.url);
    expect([again.status, again.headers['set-cookie']]).toEqual([410, undefined]);
    expect(again.body).toContain('already used');
    // The browser with the cookie may load its first address again.
    expect((await visit(link.url, { cookie })).status).toBe(303);
  });

  test('Nothing is served without the link’s own cookie, or to a prefetch, and the address stays unused', async () => {
    const [{ link }, other] = [await makeLink(), await admitted()];
    expect(await visit(link.origin)).toMatchObject({ status: 401 });
    expect((await visit(link.origin, { cookie: other.cookie })).status).toBe(401);
    expect((await visit(`${other.link.origin}/.atrium/open?${link.url.split('?')[1]}`)).status).toBe(410);
    expect((await visit(link.url, { headers: { 'sec-purpose': 'prefetch' } })).status).toBe(503);
    expect((await visit(link.url, { method: 'HEAD' })).status).toBe(401);
    // None of these requests has used up the address.
    expect((await visit(link.url)).status).toBe(303);
    expect(seen).toEqual([]);
    expect((await visit(link.origin.replace(/\/\/[^.]+/, `//${'a'.repeat(26)}`))).status).toBe(404);
    const problem = await visit(link.origin, { headers: { accept: 'application/json' } });
    expect(JSON.parse(problem.body)).toMatchObject({ status: 401, code: 'PORT_NOT_ADMITTED' });
  });

  test('A further address admits a further browser', async () => {
    const { owner, path, link, cookie } = await admitted();
    const further = await api.as(owner.token).post(`${path}/${link.id}/url`);
    expect(further.status).toBe(201);
    const opened = await visit(further.body.url);
    expect(cookieOf(opened)).not.toBe(cookie);
    for (const one of [cookie, cookieOf(opened)]) expect((await visit(link.origin, { cookie: one })).status).toBe(200);
  });
});

describe('The end of a link', () => {
  test('A revoked link is 410, and its open WebSocket is closed', async () => {
    const { owner, path, link, cookie } = await admitted();
    const socket = openSocket(link, cookie);
    await once(socket, 'open');
    const closed = once(socket, 'close');
    expect((await api.as(owner.token).get(path)).body.data).toMatchObject([{ id: link.id, port: appPort }]);
    expect((await api.as(owner.token).delete(`${path}/${link.id}`)).status).toBe(204);
    expect((await api.as(owner.token).delete(`${path}/${link.id}`)).status).toBe(204);
    const refused = await visit(link.origin, { cookie });
    expect(refused.status).toBe(410);
    expect(refused.body).toContain('<h1>This link has ended</h1>');
    await closed;
    expect((await api.as(owner.token).get(path)).body.data).toEqual([]);
    expect((await api.as(owner.token).post(`${path}/${link.id}/url`)).status).toBe(410);
  });

  test('An expired link is 410', async () => {
    const { link, cookie } = await admitted();
    await api.environment.database.pool.query(
      'UPDATE port_links SET expires_at = NOW(3) - INTERVAL 1 SECOND WHERE id = ?',
      [link.id],
    );
    expect((await visit(link.origin, { cookie })).status).toBe(410);
  });

  test('A link ends when its maker loses the role, or with the key that made it', async () => {
    const { space, path } = await buildOwner();
    const editor = await buildUser(api.identity);
    await api.identity.members.add(space.id, editor.user.email, 'editor');
    const { key, row } = await api.identity.keys.create(editor.user.id, { name: 'key', scopes: ['computers:write'] });
    const open = async (credential: string) => {
      const { body } = await api.as(credential).post(path, { port: appPort });
      return { origin: body.origin as string, cookie: cookieOf(await visit(body.url)) };
    };
    const [byHand, byKey] = [await open(editor.token), await open(key)];
    for (const { origin, cookie } of [byHand, byKey]) expect((await visit(origin, { cookie })).status).toBe(200);
    await api.identity.keys.revoke(editor.user.id, row.id);
    await waitFor('the key to be forgotten', async () => (await visit(byKey.origin, byKey)).status === 410);
    expect((await visit(byHand.origin, byHand)).status).toBe(200);
    await api.identity.members.changeRole(space.id, editor.user.id, 'viewer');
    await waitFor('the role to be forgotten', async () => (await visit(byHand.origin, byHand)).status === 410);
  });
});

describe('An admitted browser', () => {
  type Person = Awaited<ReturnType<typeof buildUser>>;

  /** Admits the browser of another editor by the owner's link, and opens a WebSocket in that browser. */
  async function letIn(credentialOf: (person: Person) => Promise<string> = async ({ token }) => token) {
    const made = await makeLink();
    const person = await buildUser(api.identity);
    await api.identity.members.add(made.space.id, person.user.email, 'editor');
    const ask = async () =>
      (await api.as(await credentialOf(person)).post(`${made.path}/${made.link.id}/url`)).body.url;
    const cookie = cookieOf(await visit(await ask()));
    const unused = (await ask()) as string;
    const socket = openSocket(made.link, cookie);
    await once(socket, 'open');
    const look = async (value = cookie) => (await visit(made.link.origin, { cookie: value })).status;
    expect(await look()).toBe(200);
    return { ...made, person, cookie, unused, look, closed: once(socket, 'close') };
  }

  const owned = async ({ link }: { link: Link }) => cookieOf(await visit(link.url));

  test('A browser loses access when its member leaves the space, and the link stays', async () => {
    const one = await letIn();
    await api.identity.members.remove(one.space.id, one.person.user.id);
    await waitFor('the member to be forgotten', async () => (await one.look()) === 410);
    await one.closed;
    expect((await visit(one.unused)).status).toBe(410);
    expect(await one.look(await owned(one))).toBe(200);
  });

  test('A browser loses access when its member becomes a viewer', async () => {
    const one = await letIn();
    await api.identity.members.changeRole(one.space.id, one.person.user.id, 'viewer');
    await waitFor('the role to be forgotten', async () => (await one.look()) === 410);
    await one.closed;
    expect((await visit(one.unused)).status).toBe(410);
  });

  test('A browser loses access with the key that asked for its address', async () => {
    let keyId = '';
    let made: string | undefined;
    const one = await letIn(async ({ user }) => {
      if (made !== undefined) return made;
      const { key, row } = await api.identity.keys.create(user.id, { name: 'key', scopes: ['computers:write'] });
      keyId = row.id;
      made = key;
      return key;
    });
    await api.identity.keys.revoke(one.person.user.id, keyId);
    await waitFor('the key to be forgotten', async () => (await one.look()) === 410);
    await one.closed;
    expect((await visit(one.unused)).status).toBe(410);
    expect(await one.look(await owned(one))).toBe(200);
  });

  test('A browser loses access when its session is signed out, and not when the session expires', async () => {
    const one = await letIn();
    const { pool } = api.environment.database;
    await pool.query('UPDATE sessions SET expires_at = NOW(3) - INTERVAL 1 SECOND WHERE user_id = ?', [
      one.person.user.id,
    ]);
    expect(await one.look()).toBe(200);
    await pool.query('UPDATE sessions SET expires_at = NOW(3) + INTERVAL 1 HOUR WHERE user_id = ?', [
      one.person.user.id,
    ]);
    expect((await api.as(one.person.token).post('/auth/logout')).status).toBe(204);
    await waitFor('the session to be forgotten', async () => (await one.look()) === 410);
    await one.closed;
    expect((await visit(one.unused)).status).toBe(410);
    expect(await one.look(await owned(one))).toBe(200);
  });

  test('A browser that an older process admitted counts as admitted by the link’s maker', async () => {
    const one = await letIn();
    await api.environment.database.pool.query(
      'UPDATE port_link_visits SET asked_by = NULL, session_id = NULL WHERE link_id = ?',
      [one.link.id],
    );
    await api.identity.members.remove(one.space.id, one.person.user.id);
    expect(await one.look()).toBe(200);
    await api.identity.members.add(one.space.id, one.person.user.email, 'owner');
    await api.identity.members.remove(one.space.id, one.owner.user.id);
    await waitFor('the maker to be forgotten', async () => (await one.look()) === 410);
  });
});

describe('What passes', () => {
  test('Atrium’s credentials do not go in, and no header that is wider than the origin comes out', async () => {
    const { link, cookie } = await admitted();
    respond = (_req, res) => {
      res.setHeader('set-cookie', ['a=1; Domain=localhost; Path=/', 'atrium-port=stolen', 'b=2; HttpOnly']);
      res.setHeader('strict-transport-security', 'max-age=1; includeSubDomains');
      res.setHeader('clear-site-data', '"cookies"');
      res.setHeader('x-mine', 'yes');
      res.writeHead(203).end('mine');
    };
    const headers = {
      authorization: 'Bearer atr_0123456789012345678901234567890123456',
      connection: 'x-hop',
      'x-hop': 'for us',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil.example',
      origin: 'https://app.example',
    };
    const answer = await visit(link.origin, { cookie: `mine=1; ${cookie}; other=2`, headers });
    expect(answer).toMatchObject({ status: 203, body: 'mine' });
    expect(answer.headers['set-cookie']).toEqual(['a=1; Path=/', 'b=2; HttpOnly']);
    expect(answer.headers).toMatchObject({ 'x-mine': 'yes' });
    for (const name of ['strict-transport-security', 'clear-site-data', 'access-control-allow-origin']) {
      expect(answer.headers).not.toHaveProperty(name);
    }
    const [inside] = seen;
    expect(inside?.headers).toMatchObject({
      cookie: 'mine=1; other=2',
      host: new URL(link.origin).host,
      'x-forwarded-proto': 'http',
      'x-forwarded-host': new URL(link.origin).host,
    });
    expect(inside?.headers['x-forwarded-for']).not.toContain('10.0.0.1');
    for (const name of ['authorization', 'x-hop']) expect(inside?.headers).not.toHaveProperty(name);
    seen.splice(0);
    await visit(link.origin, { cookie, headers: { authorization: 'Basic bWluZTptaW5l' } });
    expect(seen[0]?.headers.authorization).toBe('Basic bWluZTptaW5l');
    expect(seen[0]?.headers).not.toHaveProperty('cookie');
    seen.splice(0);
    const session = await api.identity.sessions.create((await buildOwner()).owner.user.id);
    await visit(link.origin, { cookie, headers: { authorization: `Bearer ${session}` } });
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
  });

  test.each(['HTTP/1.1 099 Low\r\n', 'HTTP/1.1 000 None\r\n', 'HTTP/1.1 200 OK\r\nx-odd: a\x01b\r\n'])(
    '502 for the invalid response %j',
    async (head) => {
      const { link, cookie } = await admitted();
      respond = (_req, res) => void res.socket?.end(`${head}content-length: 0\r\n\r\n`);
      expect((await visit(link.origin, { cookie })).status).toBe(502);
    },
  );

  test('Bodies stream both ways', async () => {
    const { link, cookie } = await admitted();
    respond = (req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      req.on('data', (chunk) => res.write(chunk));
      req.on('end', () => res.end());
    };
    const request = requestHttp({
      host: '127.0.0.1',
      port: new URL(server.url).port,
      method: 'POST',
      path: '/',
      headers: { host: new URL(link.origin).host, cookie },
    });
    request.write('one');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(String((await once(response, 'data'))[0])).toBe('one');
    request.write('two');
    expect(String((await once(response, 'data'))[0])).toBe('two');
    request.end();
    await once(response.resume(), 'end');
    expect(seen[0]?.headers['transfer-encoding']).toBe('chunked');
  });

  test('An app can refuse a body half-way, and the server goes on', async () => {
    const { link, cookie } = await admitted();
    respond = (req, res) => {
      res.writeHead(413, { connection: 'close' }).end('too much');
      res.once('finish', () => req.socket.destroy());
    };
    for (let round = 0; round < 5; round++) {
      const { host } = new URL(link.origin);
      const { port } = new URL(server.url);
      const request = requestHttp({ host: '127.0.0.1', port, method: 'POST', path: '/', headers: { host, cookie } });
      request.on('error', () => undefined);
      const pieces = setInterval(() => request.write(Buffer.alloc(1_000_000)), 1);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      clearInterval(pieces);
      expect([413, 502]).toContain(response.statusCode);
      request.destroy();
      await once(response.resume(), 'close');
    }
    respond = (_req, res) => res.end('hello');
    expect((await visit(link.origin, { cookie })).status).toBe(200);
  });

  test('WebSockets pass, also with subprotocols that look like credentials', async () => {
    const { link, cookie } = await admitted();
    const socket = openSocket(link, cookie, ['bearer.mine', 'chat']);
    await once(socket, 'open');
    socket.send('echo');
    expect(String((await once(socket, 'message'))[0])).toBe('echo');
    expect(seen[0]?.headers).toMatchObject({ 'sec-websocket-protocol': 'bearer.mine,chat' });
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
    expect(seen[0]?.headers).not.toHaveProperty('cookie');
    const isGone = once(seen[0]?.socket ?? socket, 'close');
    socket.close();
    await isGone;
    const refused = openSocket(link, '');
    const [, response] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(401);
    response.destroy();
  });

  test('The error says that nothing listens, that the port does not speak HTTP, or that the computer sleeps', async () => {
    const nothing = await admitted({ port: 1 });
    const page = await visit(nothing.link.origin, { cookie: nothing.cookie });
    expect(page.status).toBe(502);
    expect(page.body).toContain('No program listens on port 1 of this computer.');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    const odd = net.createServer((socket) => socket.end('SSH-2.0-odd\r\n')).listen(0, '127.0.0.1');
    await once(odd, 'listening');
    const wrong = await admitted({ port: (odd.address() as AddressInfo).port });
    expect((await visit(wrong.link.origin, { cookie: wrong.cookie })).body).toContain('did not answer with valid HTTP');
    odd.close();
    const { link, cookie } = await admitted();
    isAsleep = true;
    const asleep = await visit(link.origin, { cookie });
    expect(asleep.status).toBe(503);
    expect(asleep.body).toContain('does not start the computer');
  });
});

test.each(['stopped', 'paused'] as const)(
  'A link to a %s computer says so and does not start the computer',
  async (status) => {
    const { link, cookie, path } = await admitted();
    await becomes(path.split('/').at(-2) ?? '', status);
    const page = await visit(link.origin, { cookie, headers: { accept: 'application/json' } });
    expect(JSON.parse(page.body)).toMatchObject({ status: 503, code: 'COMPUTER_NOT_RUNNING' });
    expect(filesOpened).toBe(0);
  },
);

describe('beside the API', () => {
  test('a link’s host serves nothing of the API, and the API nothing of a link', async () => {
    const { link, cookie, owner } = await admitted();
    const headers = { authorization: `Bearer ${owner.token}` };
    expect((await visit(`${link.origin}/api/me`, { cookie, headers })).body).toBe('hello');
    expect((await visit(`${link.origin}/api/me`, { headers })).status).toBe(401);
    expect((await visit(`${link.origin}/auth/assets/page.css`, { headers })).status).toBe(401);
    expect((await visit('http://other.localhost/healthz')).status).toBe(404);
    expect((await visit('http://localhost/healthz', { headers: { accept: '*/*' } })).status).toBe(200);
    expect((await visit('http://localhost/.atrium/open')).status).toBe(404);
  });
});

test('400 for a request that names two hosts', async () => {
  const { link, cookie } = await admitted();
  const { host } = new URL(link.origin);
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  for (const [hosts, more] of [
    [[host, 'other.example'], ''],
    [[host, host], upgrade],
    [['localhost', host], ''],
    [['localhost', 'localhost'], upgrade],
  ] as const) {
    const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    const names = hosts.map((name) => `Host: ${name}\r\n`).join('');
    socket.write(`GET / HTTP/1.1\r\n${names}Cookie: ${cookie}\r\n${more}\r\n`);
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"HOST_UNCLEAR"');
  }
  expect(seen).toEqual([]);
});

describe('Making links', () => {
  test('Bad input, other tenants’ computers and low roles are refused', async () => {
    const { owner, space, path } = await buildOwner();
    const [viewer, stranger] = [await buildUser(api.identity), await buildUser(api.identity)];
    await api.identity.members.add(space.id, viewer.user.email, 'viewer');
    const as = (token: string, body: object, at = path) => api.as(token).post(at, body);
    expect((await as(owner.token, { port: 0 })).status).toBe(400);
    expect((await as(owner.token, { port: 70_000 })).status).toBe(400);
    expect((await as(owner.token, { port: 80, ttlSeconds: 1 })).status).toBe(400);
    expect((await as(viewer.token, { port: 80 })).status).toBe(403);
    expect((await as(stranger.token, { port: 80 })).status).toBe(404);
    const foreign = (await buildOwner()).path.split('/').at(-2) ?? '';
    expect((await as(owner.token, { port: 80 }, path.replace(/cmp_\w+/, foreign))).status).toBe(404);
    expect((await api.as(viewer.token).get(path)).status).toBe(200);
    const { body } = await as(owner.token, { port: 80 });
    const elsewhere = (await buildOwner()).path;
    expect((await api.as(owner.token).delete(`${path}/absent`)).status).toBe(404);
    expect((await api.as(stranger.token).delete(`${path}/${body.id}`)).status).toBe(404);
    expect((await api.as(owner.token).delete(`${elsewhere}/${body.id}`)).status).toBe(404);
  });

  test('The same Idempotency-Key makes one link, and each answer opens it', async () => {
    const { owner, path } = await buildOwner();
    const make = () => api.as(owner.token).post(path, { port: appPort }).set('idempotency-key', 'once');
    const [first, second] = [await make(), await make()];
    expect(second.body.id).toBe(first.body.id);
    expect((await api.as(owner.token).get(path)).body.data).toHaveLength(1);
    for (const { body } of [first, second]) expect((await visit(body.url)).status).toBe(303);
  });

  test('A computer has at most 100 links, and revoking one makes room', async () => {
    const { owner, path } = await buildOwner();
    const made = [];
    for (let count = 0; count < 100; count++) made.push(await api.as(owner.token).post(path, { port: 1 }));
    expect(made.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 201));
    expect((await api.as(owner.token).post(path, { port: 1 })).body).toMatchObject({
      status: 422,
      code: 'TOO_MANY_PORT_LINKS',
    });
    await api.as(owner.token).delete(`${path}/${made[0]?.body.id}`);
    expect((await api.as(owner.token).post(path, { port: 1 })).status).toBe(201);
  });

  test('Neither a token nor a cookie can be read from the database', async () => {
    const { link, cookie } = await admitted();
    const [rows] = await api.environment.database.pool.query('SELECT * FROM port_link_visits WHERE link_id = ?', [
      link.id,
    ]);
    const written = JSON.stringify(rows, (_key, value) =>
      value?.type === 'Buffer' ? Buffer.from(value).toString('latin1') : value,
    );
    const [value = 'none'] = /[\w-]{43}/.exec(cookie) ?? [];
    const token = new URL(link.url).searchParams.get('token') ?? 'none';
    for (const secret of [value, token]) expect(written).not.toContain(secret);
  });
});

describe('Pages of other origins', () => {
  const foreign = ['https://evil.example', 'null', 'http://another-tenant.localhost'];

  test('Pages of other origins can neither open a WebSocket nor change anything with the visitor’s cookie', async () => {
    const { link, cookie } = await admitted();
    const { host, hostname } = new URL(link.origin);
    for (const origin of [...foreign, `https://${host}`, `http://${hostname}:1`]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const answer = await visit(`${link.origin}/change`, { cookie, method, headers: { origin } });
        expect([method, origin, answer.status]).toEqual([method, origin, 403]);
      }
      const [error] = (await once(openSocket(link, cookie, [], { origin }), 'error')) as [Error];
      expect(error.message).toContain('403');
    }
    expect(seen).toEqual([]);
  });

  test('Requests of the link’s own page pass, also with a hidden origin, and so do those without an origin', async () => {
    const { link, cookie } = await admitted();
    const own: object[] = [{ origin: link.origin }, { origin: 'null', 'sec-fetch-site': 'same-origin' }, {}];
    for (const headers of own) {
      const { status } = await visit(`${link.origin}/change`, { cookie, method: 'POST', headers, body: 'a=1' });
      expect(status).toBe(200);
      const socket = openSocket(link, cookie, [], headers);
      await once(socket, 'open');
      socket.terminate();
    }
    // A picture or a link on another page only reads.
    expect((await visit(link.origin, { cookie, headers: { origin: 'https://evil.example' } })).status).toBe(200);
  });

  test('Behind a proxy that ends TLS, the public URL says which origin is the link’s own', async () => {
    const { link, cookie } = await admitted();
    const { config } = api.deps;
    const http = { ...config.http, publicUrl: 'https://atrium.example', port: 0 };
    const ports = portsConfig({ ATRIUM_PORTS_DOMAIN: 'links.example' }, http.publicUrl);
    const secure = await startApi({ ...api.deps, liveComputers, config: { ...config, http, ports } });
    try {
      const name = `${new URL(link.origin).hostname.split('.')[0]}.links.example`;
      const status = async (origin: string) =>
        (await visit(`http://${name}/change`, { at: secure, cookie, method: 'POST', headers: { origin } })).status;
      expect(await status(`https://${name}`)).toBe(200);
      for (const origin of [`http://${name}`, `https://${name}:8443`]) expect(await status(origin)).toBe(403);
    } finally {
      await secure.close({ graceMs: 0 });
    }
  });
});

function openSocket(link: Link, cookie: string, protocols: string[] = [], headers: object = {}): WebSocket {
  const { host } = new URL(link.origin);
  const url = `ws://127.0.0.1:${new URL(server.url).port}/socket`;
  return new WebSocket(url, protocols, { headers: { host, cookie, ...headers } });
}
