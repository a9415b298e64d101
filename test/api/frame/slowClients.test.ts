import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { SlowClients } from '../../../api/frame/slowClients.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// Clients that send or take nothing are cut off. No times are measured: what must end ends before the test's own time
// limit, and what must go on outlives something that has ended.

const never = 3_600_000;
const soon = 100;
let api: TestApi;
let token: string;
let spaceId: string;
beforeAll(async () => {
  api = await buildApi();
  const built = await buildUser(api.identity);
  token = built.token;
  spaceId = (await buildSpace(api.identity, built.user.id)).space.id;
});
afterAll(() => api.close());

async function withServer(
  changes: Partial<{ headersMs: number; requestMs: number; stallMs: number; maxConnections: number }>,
  use: (connect: (lines?: string[]) => Promise<Socket>) => Promise<void>,
): Promise<void> {
  const { maxConnections = 100, ...patience } = changes;
  const { http: settings } = api.deps.config;
  const config = {
    ...api.deps.config,
    http: {
      ...{ ...settings, port: 0, maxConnections },
      patience: { headersMs: never, requestMs: never, stallMs: never, ...patience },
    },
  };
  const server: RunningApi = await startApi({ ...api.deps, config });
  try {
    await use(async (lines = []) => {
      const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
      await once(socket, 'connect');
      if (lines.length > 0) socket.write(`${lines.join('\r\n')}\r\n`);
      return socket;
    });
  } finally {
    await server.close({ graceMs: 0 });
  }
}

const codeOf = (answer: string) => [answer.split(' ')[1], /"code":"(\w+)"/.exec(answer)?.[1]];
const tooLate = ['408', 'REQUEST_TIMEOUT'];
const common = () => ['Host: localhost', `Authorization: Bearer ${token}`];
const json = () => [
  'POST /api/spaces HTTP/1.1',
  ...common(),
  'Content-Type: application/json',
  'Content-Length: 50',
  '',
  '{',
];
const upload = () => [
  `POST /api/spaces/${spaceId}/drive/upload HTTP/1.1`,
  ...[
    ...common(),
    'Content-Type: multipart/form-data; boundary=b',
    'Transfer-Encoding: chunked',
    'Connection: close',
    '',
  ],
];
/** A piece of a chunked body. */
const chunk = (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
const opening = (name: string) =>
  chunk(`--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\nthe first of it`);

test('408 for headers that do not come to their end', async () => {
  await withServer({ headersMs: soon }, async (connect) => {
    expect(await text(await connect(['GET /healthz HTTP/1.1', 'Host: localhost']))).toMatch(/^HTTP\/1.1 408 /);
    // Sending nothing at all is 408 too.
    expect(await text(await connect())).toMatch(/^HTTP\/1.1 408 /);
  });
});

test('408 for a body that does not come to its end, while an upload goes on', async () => {
  await withServer({ requestMs: soon }, async (connect) => {
    const uploading = await connect(upload());
    uploading.write(opening('patient.txt'));
    expect(codeOf(await text(await connect(json())))).toEqual(tooLate);
    // The upload began earlier, and is older than a request may be.
    uploading.write(`${chunk(', and the rest\r\n--b--\r\n')}0\r\n\r\n`);
    expect(await text(uploading)).toMatch(/^HTTP\/1.1 200 /);
  });
});

test('408 for an upload that stalls, and nothing of it is kept', async () => {
  await withServer({ stallMs: soon }, async (connect) => {
    const uploading = await connect(upload());
    uploading.write(opening('broken.txt'));
    expect(codeOf(await text(uploading))).toEqual(tooLate);
  });
  const listed = await api.as(token).get(`/api/spaces/${spaceId}/drive/items`);
  expect((listed.body.data as { name: string }[]).map(({ name }) => name)).not.toContain('broken.txt');
});

test('The time in which a body waits for the server is not counted', async () => {
  const slow = new SlowClients({ headersMs: never, requestMs: 3 * soon, stallMs: never });
  const waiting = Promise.withResolvers<http.IncomingMessage>();
  const server = http.createServer((req, res) => {
    slow.watch(req, res);
    if (req.url === '/waiting') waiting.resolve(req);
    else req.resume();
    req.on('end', () => res.end('read'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const body = 'x'.repeat(4 * 2 ** 20);
  const post = (path: string, length: number, sent: string) => {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${sent}`);
    return socket;
  };
  try {
    const patient = post('/waiting', body.length, body);
    const req = await waiting.promise;
    // Clients that come later and send too little are refused meanwhile, one after another.
    for (let times = 0; times < 3; times++) {
      expect(codeOf(await text(post('/slow', 50, '{')))).toEqual(tooLate);
    }
    req.resume();
    expect(await text(patient)).toMatch(/^HTTP\/1.1 200 /);
  } finally {
    slow.close();
    server.closeAllConnections();
    server.close();
  }
});

test('Connections beyond the limit are closed as they come', async () => {
  await withServer({ maxConnections: 2 }, async (connect) => {
    const kept = [await connect(), await connect()];
    expect(await text(await connect(['GET /healthz HTTP/1.1', ...common(), '']).catch(() => '' as never))).toBe('');
    kept[0]?.write(`${['GET /healthz HTTP/1.1', ...common(), 'Connection: close', ''].join('\r\n')}\r\n`);
    expect(await text(kept[0] as Socket)).toMatch(/^HTTP\/1.1 200 /);
    kept[1]?.destroy();
  });
});

test('An answer that the client does not take is ended, and one that is taken goes on', async () => {
  // Long enough for a machine that pauses for a moment, so that a client that reads never looks stuck.
  const slow = new SlowClients({ headersMs: never, requestMs: never, stallMs: 3_000 });
  const piece = Buffer.alloc(1024 * 1024, 'x');
  const answers = new Map<string, http.ServerResponse>();
  const server = http.createServer((req, res) => {
    slow.watch(req, res);
    answers.set(req.url ?? '', res);
    for (let at = 0; at < 16; at++) res.write(piece);
    const heartbeat = setInterval(() => res.write(': hb\n\n'), soon);
    res.on('close', () => clearInterval(heartbeat));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const get = (path: string) => {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  };
  const taking = get('/taking').resume();
  const stuck = get('/stuck').pause();
  try {
    await once(server, 'request');
    while (answers.size < 2) await once(server, 'request');
    const ofStuck = answers.get('/stuck') as http.ServerResponse;
    if (!ofStuck.closed) await once(ofStuck, 'close');
    const ofTaking = answers.get('/taking') as http.ServerResponse;
    expect([ofStuck.writableFinished, ofTaking.closed]).toEqual([false, false]);
    // The client that reads gets the whole answer.
    const ended = once(taking, 'close');
    ofTaking.end();
    taking.end();
    await ended;
    expect(ofTaking.writableFinished).toBe(true);
  } finally {
    for (const socket of [taking, stuck]) socket.destroy();
    slow.close();
    await new Promise((resolve) => server.close(resolve));
  }
});
