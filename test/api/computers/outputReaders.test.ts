import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turned } from 'node:timers/promises';
import { inTurn } from '../../../api/computers/processes/inTurn.ts';
import type { HostClient, OutputRequest } from '../../../integrations/computers/hostClient.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import { type ServedComputers, serveComputers } from '../../builders/servedComputers.ts';
import { waitFor } from '../../support/waitFor.ts';

const payload = Buffer.alloc(65_536, 'a\n');
const readers = 40;

/** How many requests have asked for the process, and how often its output was and is read. */
const counts = { asked: 0, begun: 0, open: 0, records: 0 };
let gate = Promise.resolve();
let isOver = false;

/** A computer with a process that never stops writing. */
const client = {
  async process() {
    counts.asked++;
    await gate;
    return { outputBytes: payload.length, pty: null };
  },
  output: (_: string, { signal }: OutputRequest = {}) => endless(signal),
} as unknown as HostClient;

async function* endless(signal?: AbortSignal): AsyncGenerator<OutputRecord, void, undefined> {
  counts.begun++;
  counts.open++;
  try {
    for (let position = 0; !isOver; position += payload.length) {
      signal?.throwIfAborted();
      await turned();
      counts.records++;
      yield { kind: 'stdout', position, payload };
    }
  } finally {
    counts.open--;
  }
}

let served: ServedComputers;
const responses: ServerResponse[] = [];
const note = (message: unknown) => void responses.push((message as { response: ServerResponse }).response);
beforeAll(async () => {
  served = await serveComputers(client);
  subscribe('http.server.request.start', note);
});
afterAll(async () => {
  isOver = true;
  unsubscribe('http.server.request.start', note);
  await served.close();
});
beforeEach(() => {
  Object.assign(counts, { asked: 0, begun: 0, open: 0, records: 0 });
  responses.length = 0;
});

async function openReaders(): Promise<Socket[]> {
  const { token, path } = await served.computer();
  const lines = [
    `GET ${path}/processes/prc_1/output HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${token}`,
    'Accept: text/event-stream',
  ];
  return Array.from({ length: readers }, () => {
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return socket.resume();
  });
}

async function leave(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await waitFor('the responses to close', () => responses.every(({ closed }) => closed));
}

const noneOpen = () => waitFor('the end of all reading', () => counts.open === 0);

test('The output is read no more when its readers have left', async () => {
  const sockets = await openReaders();
  await waitFor('all readers', () => counts.open === readers);
  await leave(sockets);
  await noneOpen();
});

test('The output is read no more when its readers left before their streams began', async () => {
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  const sockets = await openReaders();
  await waitFor('all requests', () => counts.asked === readers);
  await leave(sockets);
  held.resolve();
  await waitFor('all readers', () => counts.begun === readers);
  await noneOpen();
});

test('A request is answered before each of many readers got more output', async () => {
  const sockets = await openReaders();
  await waitFor('all readers', () => counts.open === readers);
  const ask = async () => expect((await fetch(`${served.url}/healthz`)).status).toBe(200);
  await ask();
  await waitFor('output', () => counts.records > 3 * readers);
  const before = counts.records;
  await ask();
  expect(counts.records - before).toBeLessThan(readers);
  await leave(sockets);
  await noneOpen();
});

test('Users with readers of output take turns, however many readers each has', async () => {
  const { signal } = new AbortController();
  const pieces = { many: 0, one: 0 };
  const enough = 20;
  const read = async (userId: 'many' | 'one') => {
    for await (const _ of inTurn(endless(), { userId, signal })) {
      pieces[userId]++;
      if (pieces.one >= enough) return;
    }
  };
  await Promise.all([...Array.from({ length: readers }, () => read('many')), read('one')]);
  expect(pieces.one).toBe(enough);
  // Each of the readers may have one piece more when the other user has enough.
  expect(pieces.many).toBeLessThanOrEqual(enough + readers + 1);
});
