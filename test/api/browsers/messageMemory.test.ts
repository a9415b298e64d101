import { once } from 'node:events';
import type { Socket } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { Arrivals, Gate } from '../../../api/browsers/cdp/arrivals.ts';
import { MessageMemory } from '../../../api/browsers/cdp/messageMemory.ts';
import { waitFor } from '../../support/waitFor.ts';

const never = () => ({ signal: new AbortController().signal, onSlow: () => undefined });
const memoryOf = (slowMs = 60_000) => new MessageMemory({ mostBytes: 100, perOwnerBytes: 60, slowMs });

/** Whether the memory has been given by now. */
async function isGiven(room: Promise<unknown>): Promise<boolean> {
  await new Promise(setImmediate);
  return Promise.race([room.then(() => true), Promise.resolve().then(() => false)]);
}

test('Memory is given in order, up to the limit, and again after it is given back', async () => {
  const memory = memoryOf();
  const [first, second] = [await memory.take('a', 50, never()), await memory.take('b', 50, never())];
  const [third, fourth] = [memory.take('c', 60, never()), memory.take('d', 10, never())];
  expect(memory.usedBytes).toBe(100);
  first?.[Symbol.dispose]();
  expect(await isGiven(third)).toBe(false);
  // A smaller request does not overtake.
  expect(await isGiven(fourth)).toBe(false);
  second?.shrinkTo(10);
  expect([await isGiven(third), await isGiven(fourth)]).toEqual([true, true]);
  expect(memory.usedBytes).toBe(80);
});

test('An owner at its share waits, and other owners still get memory', async () => {
  const memory = memoryOf();
  await memory.take('a', 40, never());
  const [own, other] = [memory.take('a', 40, never()), memory.take('b', 40, never())];
  expect([await isGiven(own), await isGiven(other)]).toEqual([false, true]);
});

test('A waiter that gives up makes way for the next', async () => {
  const memory = memoryOf();
  await Promise.all([memory.take('a', 50, never()), memory.take('b', 40, never())]);
  const given = new AbortController();
  const first = memory.take('c', 50, { ...never(), signal: given.signal });
  const second = memory.take('d', 10, never());
  given.abort();
  expect(await first).toBeUndefined();
  expect(await second).toBeDefined();
});

test('The owner that keeps memory for long is told when it blocks a waiter', async () => {
  const memory = memoryOf(20);
  const slow = Promise.withResolvers<string>();
  await memory.take('a', 60, { ...never(), onSlow: () => slow.resolve('a') });
  await memory.take('b', 40, { ...never(), onSlow: () => slow.resolve('b') });
  void memory.take('b', 40, never());
  // b is over its own share, so a is not in its way.
  expect(await slow.promise).toBe('b');
});

test('Only the beginning of a large message is read before there is memory for it', async () => {
  const size = 8 * 1_048_576;
  const memory = new MessageMemory({ mostBytes: size, perOwnerBytes: size, slowMs: 60_000 });
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const source = new WebSocket(`ws://127.0.0.1:${(server.address() as { port: number }).port}`);
  const [[reader, { socket }]] = await Promise.all([
    once(server, 'connection') as Promise<[WebSocket, { socket: Socket }]>,
    once(source, 'open'),
  ]);
  const gone = new AbortController();
  const gate = new Gate(reader);
  const options = { memory, owner: 'a', maxMessageBytes: size, gate, signal: gone.signal, onSlow: () => undefined };
  const arrivals = new Arrivals(socket, options);
  const heard: number[] = [];
  const rooms: Promise<Disposable | undefined>[] = [];
  reader.on('message', (data: Buffer) => {
    heard.push(data.length);
    rooms.push(arrivals.arrived(data.length));
  });
  const inTheWay = await memory.take('b', size, never());
  source.send('small');
  source.send(Buffer.alloc(size));
  await waitFor('the small message', async () => heard.length === 1);
  await waitFor('the reader to wait', async () => reader.isPaused);
  expect(socket.bytesRead).toBeLessThan(size / 2);
  inTheWay?.[Symbol.dispose]();
  await waitFor('the large message', async () => heard.length === 2);
  expect(heard).toEqual([5, size]);
  expect(memory.usedBytes).toBe(size);
  for (const room of rooms) (await room)?.[Symbol.dispose]();
  expect(memory.usedBytes).toBe(0);
  // A message that arrived in part is forgotten with its connection. The rest of this one never comes.
  source.send(Buffer.alloc(size / 2), { fin: false });
  await waitFor('the beginning of the message', async () => memory.usedBytes > 0);
  gone.abort();
  await waitFor('the memory to be free', async () => memory.usedBytes === 0);
  source.terminate();
  server.close();
});
