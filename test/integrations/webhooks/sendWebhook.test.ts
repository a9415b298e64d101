import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { EgressGuard } from '../../../integrations/egress/guard.ts';
import { sendWebhook } from '../../../integrations/webhooks/sendWebhook.ts';
import { startReceiver } from '../../builders/webhookReceiver.ts';

// Endpoints may be hostile. For any answer, an attempt ends in time with a status.

const owner = { purpose: 'webhook', policy: { allow: [], deny: [] }, record: async () => undefined };
const webhook = { id: 'whd_1', body: '{}', secrets: ['whsec_AAAA'] };

/** Much shorter than the timeout of an attempt, but longer than the other answers here need. */
const timeoutMs = 1_000;
const sendTo = (host: string, guard = new EgressGuard({ allowInternal: [host] })) =>
  sendWebhook(guard, owner, { ...webhook, url: `http://${host}/` }, timeoutMs);

/** Sends to a server that handles each connection with `treat`. Waits until the connection is closed. */
async function sendToHostile(treat: (socket: Socket) => void) {
  const closed: Promise<unknown>[] = [];
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    closed.push(new Promise((resolve) => socket.on('close', resolve)));
    socket.once('data', () => treat(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = await sendTo(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  await Promise.all(closed);
  server.close();
  return end;
}

/** Writes the text again and again until the connection is closed. */
function writeOn(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 5);
  socket.on('close', () => clearInterval(timer));
}

const tooLate = { answer: null, error: 'TIMEOUT' };
const failed = { answer: null, error: 'CONNECTION_FAILED' };

test('an answer with an endless body counts by its status, and is cut off', async () => {
  const end = await sendToHostile((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    writeOn(socket, `1000\r\n${'a'.repeat(0x1000)}\r\n`);
  });
  expect(end).toMatchObject({ answer: 200, error: null });
});

test.each<[string, (socket: Socket) => void, object]>([
  ['nothing at all', () => undefined, tooLate],
  [
    'headers that never end',
    (socket) => writeOn(socket, socket.bytesWritten === 0 ? 'HTTP/1.1 200 OK\r\na: ' : 'a'),
    tooLate,
  ],
  ['interim answers for ever', (socket) => writeOn(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'), tooLate],
  ['headers of a megabyte', (socket) => socket.write(`HTTP/1.1 200 OK\r\na: ${'a'.repeat(1_000_000)}\r\n\r\n`), failed],
  ['something else than HTTP', (socket) => socket.write('\u0000\u001b[31mgo away\r\n\r\n'), failed],
  ['an end', (socket) => socket.destroy(), failed],
])('an answer with %s fails with a code', async (_what, treat, expected) => {
  expect(await sendToHostile(treat)).toEqual(expected);
});

test('a redirect to an internal address is not followed', async () => {
  const [inside, outside] = await Promise.all([startReceiver(), startReceiver()]);
  outside.answerWith(307, { location: inside.url });
  const guard = new EgressGuard({ allowInternal: [inside.host, outside.host] });
  expect(await sendTo(outside.host, guard)).toMatchObject({ answer: 307, error: 'ANSWER_NOT_2XX' });
  expect(inside.received).toEqual([]);
  await Promise.all([inside.close(), outside.close()]);
});

test('a name that resolves to an internal address when the webhook is sent is refused', async () => {
  const inside = await startReceiver();
  const answers = [['93.184.215.14'], ['127.0.0.1']];
  const guard = new EgressGuard({ allowInternal: [], resolve: async () => answers.shift() ?? [] });
  const host = inside.host.replace('127.0.0.1', 'rebound.example');
  const [name = '', port] = host.split(':');
  await guard.admit({ host: name, port: Number(port) }, owner);
  expect(await sendTo(host, guard)).toEqual({ answer: null, error: 'EGRESS_REFUSED' });
  expect(inside.received).toEqual([]);
  await inside.close();
});

test.each([
  ['429 and seconds', 429, '120', 120_000],
  ['503 and a year', 503, '31536000', 86_400_000],
  ['503 and nonsense', 503, 'soon', undefined],
  ['500, which says nothing of when', 500, '120', undefined],
])('Retry-After is read from an answer with %s', async (_what, status, value, expected) => {
  const receiver = await startReceiver();
  receiver.answerWith(status, { 'retry-after': value });
  const end = await sendTo(receiver.host);
  expect(end).toEqual({ answer: status, error: 'ANSWER_NOT_2XX', retryAfterMs: expected });
  await receiver.close();
});

test('nothing is sent if the destination cannot be recorded, and the error is not that of the endpoint', async () => {
  const receiver = await startReceiver();
  const guard = new EgressGuard({ allowInternal: [receiver.host] });
  const unrecorded = { ...owner, record: () => Promise.reject(new Error('The database is away.')) };
  const sent = sendWebhook(guard, unrecorded, { ...webhook, url: receiver.url }, timeoutMs);
  await expect(sent).rejects.toThrow('The database is away.');
  expect(receiver.received).toEqual([]);
  await receiver.close();
});
