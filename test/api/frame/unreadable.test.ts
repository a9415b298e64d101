import { once } from 'node:events';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';

// Bytes that never become a request are answered with a problem, like a request. Node itself answers a bare status.

let api: TestApi;
let server: RunningApi;
const lines: string[] = [];
const sink = new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) });

beforeAll(async () => {
  api = await buildApi();
  const { deps } = api;
  const config = { ...deps.config, http: { ...deps.config.http, port: 0 } };
  server = await startApi({ ...deps, config, logger: pino(sink) });
});
afterAll(async () => {
  await server.close({ graceMs: 0 });
  await api.close();
});
beforeEach(() => void lines.splice(0));

/** All that the server sends before it closes the connection. */
async function send(bytes: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(bytes);
  return text(socket);
}

const large = 'x'.repeat(20_000);

test.each([
  ['a URL that is too long', `GET /healthz?a=${large} HTTP/1.1\r\nhost: a\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['a header that is too long', `GET /healthz HTTP/1.1\r\nhost: a\r\na: ${large}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['another protocol', 'SSH-2.0-client\r\n\r\n', 400, 'INVALID_HTTP'],
  [
    'a length and chunks',
    'POST /auth/exchange-code HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /docs HTTP/1.1\r\nhost: a\r\n\r\n',
    400,
    'INVALID_HTTP',
  ],
  [
    'two lengths',
    'POST /auth/exchange-code HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef',
    400,
    'INVALID_HTTP',
  ],
  ['a header that goes on in the next line', 'GET /healthz HTTP/1.1\r\nhost: a\r\na b: c\r\n\r\n', 400, 'INVALID_HTTP'],
])('%s gets a problem with an id that is in the log, and ends the connection', async (_what, bytes, status, code) => {
  const answer = await send(bytes);
  expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toContain('content-type: application/problem+json; charset=utf-8');
  const problem = JSON.parse(body) as { requestId: string };
  expect(problem).toMatchObject({ status, code, instance: '/' });
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ status, code, requestId: problem.requestId }),
  );
});

test('Unreadable bytes after a whole answer are answered too, and never inside an answer', async () => {
  const first = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n';
  const answer = await send(`${first}nonsense\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 (200|400) /);
  expect(answer).toContain('INVALID_HTTP');
});
