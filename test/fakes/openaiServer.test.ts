import { type FakeProvider, startFakeProvider } from './openaiServer.ts';
import { stampNow } from './script.ts';

let fake: FakeProvider;
beforeAll(async () => {
  fake = await startFakeProvider();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

const post = (body: object, signal?: AbortSignal) =>
  fetch(`${fake.url}/chat/completions`, { method: 'POST', body: JSON.stringify({ messages: [], ...body }), signal });

const stampsIn = (text: string) => [...text.matchAll(/"content":"(\d+) "/g)].map(([, stamp]) => Number(stamp));

test('The fake provider keeps an absolute pace on many streams at once', async () => {
  const texts = await Promise.all(
    Array.from({ length: 32 }, () => post({ model: 'paced-100-10-stamps' }).then((response) => response.text())),
  );
  const tookMs = texts.map((text) => {
    const stamps = stampsIn(text);
    expect(stamps).toHaveLength(100);
    return ((stamps.at(-1) ?? 0) - (stamps[0] ?? 0)) / 1000;
  });
  // 99 gaps of 10 ms. A late timer delays its own token, but none after it.
  expect(Math.min(...tookMs)).toBeGreaterThan(960);
  expect(Math.min(...tookMs)).toBeLessThan(1_100);
});

test('Tokens are stamped with the time of sending', async () => {
  const text = await (await post({ model: 'paced-5-2-stamps' })).text();
  const stamps = stampsIn(text);
  expect(stamps).toHaveLength(5);
  expect(stamps).toEqual([...stamps].sort((a, b) => a - b));
  expect(stampNow() - (stamps.at(-1) ?? 0)).toBeLessThan(1_000_000);
});

test('Enqueued scripts are played before the script in the message', async () => {
  fake.enqueue({ tokens: ['enqueued'] });
  const message = { role: 'user', content: 'please\nfake {"tokens":["asked"]}' };
  expect(await (await post({ model: 'm', messages: [message] })).text()).toContain('enqueued');
  expect(await (await post({ model: 'm', messages: [message] })).text()).toContain('asked');
  expect(await (await post({ model: 'm' })).text()).toContain('Hello');
});

test('A stream can be cut at an exact byte', async () => {
  fake.enqueue({ tokens: 50, fail: { how: 'cut', afterBytes: 777 } });
  const response = await post({ model: 'm' });
  let bytes = 0;
  const read = async () => {
    for await (const chunk of response.body ?? []) bytes += chunk.length;
  };
  await expect(read()).rejects.toThrow();
  expect(bytes).toBe(777);
});

test('The fake provider knows which exchanges the client broke off, and counts open connections', async () => {
  const stop = new AbortController();
  const response = await post({ model: 'paced-1000-5' }, stop.signal);
  await response.body?.getReader().read();
  expect(fake.openConnections()).toBeGreaterThan(0);
  stop.abort();
  const [first] = fake.requests;
  if (!first) throw new Error('no request was recorded');
  expect((await fake.closed(first)).closedByClient).toBe(true);

  await (await post({ model: 'm' })).text();
  expect((await fake.closed(await fake.request(1))).closedByClient).toBe(false);
});

test('Another process can control the fake provider', async () => {
  const root = fake.url.replace('/v1', '');
  await fetch(`${root}/fake/enqueue`, { method: 'POST', body: JSON.stringify([{ status: 418, body: 'teapot' }]) });
  expect((await post({ model: 'm' })).status).toBe(418);
  expect(await (await fetch(`${root}/fake/stats`)).json()).toEqual({ requests: 1, open: 0, closedByClient: 0 });
});
