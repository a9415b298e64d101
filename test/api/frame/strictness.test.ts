import http from 'node:http';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// Requests that `fetch` would correct before it sends them. All others are in oddRequests.test.ts, for every operation.

let api: TestApi;
let server: http.Server;
let token: string;
let spaceId: string;
beforeAll(async () => {
  api = await buildApi();
  const built = await buildUser(api.identity);
  token = built.token;
  spaceId = (await buildSpace(api.identity, built.user.id)).space.id;
  server = http.createServer(api.app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  await api.close();
});

/** Sends raw bytes. Returns the status and the whole answer. */
async function send(lines: string[], body: Buffer | string = ''): Promise<{ status: number; said: string }> {
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  const bytes = Buffer.from(body);
  const length = bytes.length > 0 ? [`Content-Length: ${bytes.length}`] : [];
  socket.write(Buffer.from(`${[...lines, ...length, 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1'));
  socket.write(bytes);
  const answer = await text(socket);
  return { status: Number(answer.split(' ')[1]), said: answer };
}

const authorized = () => ['GET /api/me HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${token}`];

test('A request with each header once is accepted', async () => {
  expect(await send(authorized())).toMatchObject({ status: 200 });
});

test.each([
  ['Authorization', () => [...authorized(), 'Authorization: Bearer other']],
  ['Authorization, the same', () => [...authorized(), `authorization: Bearer ${token}`]],
  ['Host', () => [...authorized(), 'Host: evil.example']],
  ['Idempotency-Key', () => [...authorized(), 'Idempotency-Key: a', 'Idempotency-Key: b']],
])('400 for a repeated header: %s', async (_name, lines) => {
  const { status, said } = await send(lines());
  expect([status, /"code":"(\w+)"/.exec(said)?.[1]]).toEqual([400, 'REPEATED_HEADER']);
});

test('400 for bytes in a target that must be percent-encoded', async () => {
  const [, ...rest] = authorized();
  expect(await send(['GET /api/spaces?cursor=caf\u00e9 HTTP/1.1', ...rest])).toMatchObject({ status: 400 });
});

test('400 for an invalid text, with its place', async () => {
  const post = (body: string) => api.as(token).post('/api/spaces').set('content-type', 'application/json').send(body);
  const nul = await post('{"name":"a\\u0000b"}');
  expect(nul.body).toMatchObject({ code: 'INVALID_REQUEST', errors: [{ pointer: '/name' }] });
  const half = await post('{"name":{"a/b":["x","\\ud83d"]}}');
  expect(half.body).toMatchObject({
    errors: [{ pointer: '/name/a~1b/1', detail: expect.stringContaining('surrogate') }],
  });
  const bytes = await send(
    ['POST /api/spaces HTTP/1.1', ...authorized().slice(1), 'Content-Type: application/json'],
    Buffer.concat([Buffer.from('{"name":"\ufffd'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]),
  );
  expect(bytes.said).toContain('at byte 12');
  const whole = await post('{"name":"caf\\u00e9 \\ud83d\\ude00 \\ufffd"}');
  expect([whole.status, whole.body.name]).toEqual([201, 'café 😀 \ufffd']);
});

const part = (headers: string, value: Buffer | string) =>
  Buffer.concat([Buffer.from('--b\r\n'), Buffer.from(headers, 'latin1'), Buffer.from('\r\n\r\n'), Buffer.from(value)]);
const file = (name: string) => `Content-Disposition: form-data; name="file"; filename="${name}"`;

test.each([
  ['a file name with NUL', [part(file('a\0b.txt'), 'x')]],
  ['a file name that is no UTF-8', [part(file('a\xff.txt'), 'x')]],
  [
    'a field name that is no UTF-8',
    [part('Content-Disposition: form-data; name="pa\xffth"', '/'), part(file('a'), 'x')],
  ],
  [
    'a field that is no UTF-8',
    [part('Content-Disposition: form-data; name="path"', Buffer.from([0x2f, 0xff])), part(file('a'), 'x')],
  ],
  ['a field with NUL', [part('Content-Disposition: form-data; name="path"', '/a\0/'), part(file('a'), 'x')]],
])('400 for a multipart body with %s, and nothing is stored', async (_what, parts) => {
  const body = Buffer.concat([...parts.flatMap((one) => [one, Buffer.from('\r\n')]), Buffer.from('--b--\r\n')]);
  const { status, said } = await send(
    [
      `POST /api/spaces/${spaceId}/drive/upload HTTP/1.1`,
      ...authorized().slice(1),
      'Content-Type: multipart/form-data; boundary=b',
    ],
    body,
  );
  expect([status, said.includes('"pointer"') || said.includes('INVALID_MULTIPART')]).toEqual([400, true]);
  const listed = await api.as(token).get(`/api/spaces/${spaceId}/drive/items`);
  expect(listed.body.data).toEqual([]);
});
