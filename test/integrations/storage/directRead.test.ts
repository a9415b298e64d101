import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { DirectRead } from '../../../integrations/storage/directRead.ts';

/** A store with scripted raw answers. The tests of the API use the real store. */
const bytes = randomBytes(5 * 1_048_576 + 3);
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');
const headOf = (length = bytes.length, status = '200 OK') => `HTTP/1.1 ${status}\r\nContent-Length: ${length}\r\n\r\n`;

let answer: (socket: Socket, request: string) => void;
let closed: Promise<unknown>;
const server = createServer((socket) => {
  // Not `once`, which rejects if the reader resets the connection.
  closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('error', () => undefined);
  socket.once('data', (request) => answer(socket, request.toString()));
});
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => server.close());
const open = (...[range]: Parameters<typeof DirectRead.open> extends [string, unknown, ...infer Rest] ? Rest : never) =>
  DirectRead.open(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket/key?signed=1`,
    { length: range === undefined ? bytes.length : range.end - range.start + 1, silenceMs: 1_000 },
    range,
  );

/** A slow reader that keeps what it gets. Many windows arrive before it has taken the earlier ones. */
function slowReader(): { reader: Writable; content(): Buffer } {
  const taken: Buffer[] = [];
  const reader = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, done) {
      setImmediate(() => {
        taken.push(Buffer.from(chunk));
        setImmediate(done);
      });
    },
  });
  return { reader, content: () => Buffer.concat(taken) };
}

test.each<[string, (socket: Socket) => void]>([
  ['at once', (socket) => socket.end(Buffer.concat([Buffer.from(headOf()), bytes]))],
  [
    'in pieces that split its head',
    async (socket) => {
      socket.setNoDelay(true);
      for (const character of headOf()) await new Promise((resolve) => socket.write(character, resolve));
      for (let at = 0; at < bytes.length; at += 77_777) {
        await new Promise((resolve) => socket.write(bytes.subarray(at, at + 77_777), resolve));
      }
    },
  ],
])('an answer that comes %s reaches a slow reader unchanged', async (_name, send) => {
  answer = send;
  const read = await open();
  const { reader, content } = slowReader();
  await read?.sendTo(reader);
  expect(reader.writableFinished).toBe(true);
  expect(sha256(content())).toBe(sha256(bytes));
  await closed;
});

test('a range is requested and returned', async () => {
  let asked = '';
  answer = (socket, request) => {
    asked = request;
    socket.end(Buffer.concat([Buffer.from(headOf(4, '206 Partial Content')), Buffer.from('abcd')]));
  };
  const { reader, content } = slowReader();
  await (await open({ start: 3, end: 6 }))?.sendTo(reader);
  expect(asked).toMatch(/^GET \/bucket\/key\?signed=1 HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/);
  expect(asked).toContain('\r\nRange: bytes=3-6\r\n');
  expect(content().toString()).toBe('abcd');
});

test.each([
  ['an error', headOf(9, '404 Not Found')],
  ['another length', headOf(9)],
  ['no length', 'HTTP/1.1 200 OK\r\n\r\n'],
  ['chunks', `HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ['a range that nobody asked for', headOf(bytes.length, '206 Partial Content')],
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['a head without end', 'HTTP/1.1 200 OK\r\n'.padEnd(40_000, 'x')],
  ['nothing', ''],
])('an answer with %s is left to the SDK', async (_name, head) => {
  answer = (socket) => socket.end(head);
  expect(await open()).toBeUndefined();
  await closed;
});

test('a store that does not listen, or uses TLS, is left to the SDK', async () => {
  expect(await DirectRead.open('https://127.0.0.1:1/bucket/key', { length: 10, silenceMs: 1_000 })).toBeUndefined();
  expect(await DirectRead.open('http://127.0.0.1:1/bucket/key', { length: 10, silenceMs: 1_000 })).toBeUndefined();
});

test('a store that is silent or stalls in the middle fails with an error', async () => {
  answer = () => undefined;
  await expect(open()).rejects.toThrow(/does not answer/);
  answer = (socket) => socket.write(Buffer.concat([Buffer.from(headOf()), bytes.subarray(0, 1_000_000)]));
  const { reader } = slowReader();
  await expect((await open())?.sendTo(reader)).rejects.toThrow(/stalled/);
  expect(reader.destroyed).toBe(true);
});

test('a store that breaks off destroys the reader, so that the content never looks complete', async () => {
  answer = (socket) => socket.end(Buffer.concat([Buffer.from(headOf()), bytes.subarray(0, 1_000_000)]));
  const { reader } = slowReader();
  await expect((await open())?.sendTo(reader)).rejects.toThrow('in the middle');
  expect([reader.destroyed, reader.writableFinished]).toEqual([true, false]);
});

test.each(['before', 'while'])('a reader that leaves %s the bytes come ends the connection', async (when) => {
  answer = (socket) => void socket.write(Buffer.concat([Buffer.from(headOf()), bytes.subarray(0, 3_000_000)]));
  const read = await open();
  const reader = new PassThrough();
  if (when === 'before') reader.destroy();
  const sending = read?.sendTo(reader);
  if (when === 'while') {
    await once(reader, 'readable');
    reader.destroy();
  }
  await sending;
  await closed;
});
