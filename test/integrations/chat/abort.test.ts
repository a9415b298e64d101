import { getEventListeners } from 'node:events';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import type { FakeScript } from '../../fakes/script.ts';
import { providers, runnerFor, user } from './support.ts';

let fake: FakeProvider;
beforeAll(async () => {
  fake = await startFakeProvider();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

/** Without an abort, each of these lasts longer than the test may take. */
const moments: [string, FakeScript][] = [
  ['before the headers', { headersDelayMs: 3_600_000 }],
  ['before the first token', { firstTokenDelayMs: 3_600_000 }],
  ['in the middle of the answer', { tokens: 1_000_000, intervalMs: 2 }],
  ['while the answer floods in', { tokens: 10_000_000 }],
];

describe.each(providers)('stopping a call to %s', (_provider, modelId) => {
  test.each(moments)('%s closes its connection at once', async (_moment, script) => {
    fake.enqueue(script);
    const stop = new AbortController();
    const reason = new Error('stopped by the user');
    let partsAfterStop = 0;
    const run = runnerFor(fake.url).run({ modelId, prompt: [user('hello')], abortSignal: stop.signal }, (part) => {
      if (stop.signal.aborted) partsAfterStop += 1;
      if (part.type === 'text-delta') setImmediate(() => stop.abort(reason));
    });
    const outcome = expect(run).rejects.toBe(reason);
    const request = await fake.request(0);
    if (script.tokens === undefined) setTimeout(() => stop.abort(reason), 50);
    await outcome;
    await fake.closed(request);
    expect(request.closedByClient).toBe(true);
    expect(partsAfterStop).toBe(0);
  });

  test('before it begins sends nothing', async () => {
    const call = { modelId, prompt: [user('hello')], abortSignal: AbortSignal.abort('never mind') };
    await expect(runnerFor(fake.url).run(call, () => {})).rejects.toBe('never mind');
    expect(fake.requests).toHaveLength(0);
  });
});

test("a finished call leaves no listener on its turn's signal", async () => {
  const stop = new AbortController();
  const runner = runnerFor(fake.url);
  for (let round = 0; round < 20; round++) {
    await runner.run({ modelId: 'local', prompt: [user('hello')], abortSignal: stop.signal }, () => {});
  }
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});
