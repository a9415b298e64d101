import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Response } from 'express';
import { goneOf, whenClosed } from '../../../api/frame/goneOf.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { type ServedComputers, serveComputers } from '../../builders/servedComputers.ts';

/** Node warns of a leak when an emitter gets more. */
const mostListeners = EventEmitter.defaultMaxListeners;
const text = 'what a program has written';

const client = {
  readFile: async (_path: string, { range }: { range?: { start: number; end: number } }) => ({
    ...{ size: text.length, mode: 0o644, modifiedAt: new Date(0).toISOString(), etag: '"1"', range },
    body: Readable.from([Buffer.from(range === undefined ? text : text.slice(range.start, range.end + 1))]),
  }),
  process: async () => ({ outputBytes: text.length, pty: null }),
  async *output() {
    yield { kind: 'stdout', position: 0, payload: Buffer.from(text) };
  },
} as unknown as HostClient;
let served: ServedComputers;
/** The most listeners for `close` that one response has had. */
let most = 0;

function watch(message: unknown): void {
  const { response } = message as { response: ServerResponse };
  response.on('newListener', (event) => {
    if (event === 'close') most = Math.max(most, response.listenerCount('close') + 1);
  });
}

beforeAll(async () => {
  served = await serveComputers(client);
  subscribe('http.server.request.start', watch);
});
afterAll(async () => {
  unsubscribe('http.server.request.start', watch);
  await served.close();
});
beforeEach(() => {
  most = 0;
});

test.each([
  ['a whole file', '/files?path=a', {}, 200],
  ['a part of a file', '/files?path=a', { range: 'bytes=0-3' }, 206],
  ['output as text', '/processes/prc_1/output', { accept: 'text/plain' }, 200],
  ['output as events', '/processes/prc_1/output', { accept: 'text/event-stream' }, 200],
])('The answer with %s has fewer close listeners than Node warns about', async (_, request, headers, status) => {
  const { token, path } = await served.computer();
  const answer = await fetch(`${served.url}${path}${request}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  expect([answer.status, (await answer.text()).length > 0]).toEqual([status, true]);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(mostListeners);
});

test('All work that waits for the end of a response shares one listener, and is done once, in order', () => {
  const res = new EventEmitter() as unknown as Response;
  const done: number[] = [];
  for (let number = 0; number < 100; number++) whenClosed(res, () => void done.push(number));
  const signals = Array.from({ length: 100 }, () => goneOf(res));
  expect(res.listenerCount('close')).toBe(1);
  res.emit('close');
  res.emit('close');
  expect(done).toEqual(Array.from({ length: 100 }, (_, number) => number));
  expect(signals.every(({ aborted }) => aborted)).toBe(true);
  // Work that comes later is done too.
  whenClosed(res, () => void done.push(100));
  expect([done.at(-1), goneOf(res).aborted]).toEqual([100, true]);
});
