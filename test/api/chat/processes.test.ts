import { asUser, buildChatUser, type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildIdentity } from '../../builders/identity.ts';
import { fake } from '../../builders/product.ts';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { type ProductProcess, startProduct } from '../../support/product.ts';
import { abortStreams, collect } from '../../support/sseClient.ts';

/** As in production: two API processes and a worker. The second API leaves all model calls to the worker. */
let provider: FakeProvider;
let environment: TestEnvironment;
let worker: ProductProcess;
let apis: [ProductProcess, ProductProcess];
/** The same user, at one API and at the other. */
let here: ChatUser;
let there: ChatUser;

beforeAll(async () => {
  provider = await startFakeProvider();
  environment = await createTestEnvironment({
    ATRIUM_COMPATIBLE_BASE_URL: provider.url,
    ATRIUM_COMPATIBLE_MODELS: 'fake-1',
    ATRIUM_TITLE_MODEL: 'off',
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  const identity = await buildIdentity(environment);
  worker = await startProduct(environment, 'worker');
  apis = [
    await startProduct(environment, 'api'),
    await startProduct(environment, 'api', { ATRIUM_API_CALLS_MODELS: 'false' }),
  ];
  here = await buildChatUser({ url: apis[0].apiUrl, identity });
  there = asUser({ url: apis[1].apiUrl }, here);
});
afterAll(async () => {
  abortStreams();
  await Promise.all([...apis, worker].map((process) => process.stop()));
  await provider.stop();
  await environment.close();
});

test.each([
  { written: 'by the worker', sender: () => there, reader: () => here },
  { written: 'by one of them', sender: () => here, reader: () => there },
])('A turn written $written is read through both APIs, byte for byte alike', async ({ sender, reader }) => {
  const sent = await sender().send({ content: fake({ tokens: 60, intervalMs: 30 }) });
  const { turnId, threadId } = idsOf(sent);
  const resumed = await reader().open(`/chat/stream/${threadId}/stream`);
  const [first, second] = await Promise.all([collect(sent), collect(resumed)]);
  expect(first.complete).toBe(true);
  expect(first.text.split(' ').filter(Boolean)).toHaveLength(60);
  expect(second.events).toEqual(first.events);
  // A slow stream is not sent in lumps: many tokens are a chunk of their own.
  expect(first.chunks.filter(({ type }) => type === 'text-delta').length).toBeGreaterThan(15);
  expect(await there.turn(turnId)).toMatchObject({ status: 'completed' });
});

test('A turn can be stopped through the other API', async () => {
  const sent = await here.send({ content: fake({ tokens: 500, intervalMs: 20 }) });
  await collect(sent, ({ text }) => text.includes('w2 '));
  const { turnId } = idsOf(sent);
  await there.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  expect((await collect(sent)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(await here.ended(turnId)).toMatchObject({ status: 'stopped' });
});

test('the same message to both APIs at once is one turn', async () => {
  const body = { content: 'Both', outboxItemId: 'both' };
  const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? here : there).ask(body)));
  expect(new Set(answers.map(({ turnId }) => turnId)).size).toBe(1);
  expect(new Set(answers.map(({ events }) => JSON.stringify(events))).size).toBe(1);
  expect(provider.requests.filter(({ body: { messages } }) => JSON.stringify(messages).includes('Both'))).toHaveLength(
    1,
  );
});

test('The worker that ends a turn starts the queued one behind it', async () => {
  const first = await here.send({ content: fake({ tokens: 10, intervalMs: 20 }) });
  const { threadId } = idsOf(first);
  const second = await there.ask({ content: 'Then this', threadId });
  expect(second.text).toBe('Hello from the fake provider.');
  expect((await collect(first)).complete).toBe(true);
});

test('A worker that stops hands its turn over, and another worker begins the answer again', async () => {
  const sent = await there.send({ content: fake({ tokens: 150, intervalMs: 20 }, 'handed over') });
  await collect(sent, ({ text }) => text.includes('w2 '));
  // The worker has a second to stop, and the answer takes three: it gives up in the middle, before another worker is
  // there.
  await worker.stop();
  worker = await startProduct(environment, 'worker');
  const rest = await collect(sent);
  expect(rest.complete).toBe(true);
  expect(rest.chunks.some(({ type }) => type === 'data-attempt')).toBe(true);
  const turn = await there.ended(idsOf(sent).turnId);
  expect(turn.status).toBe('completed');
  expect((await there.answerOf(turn))?.split(' ').filter(Boolean)).toHaveLength(150);
});

test('An API that stops ends its streams, and clients resume them at the other API', async () => {
  const sent = await there.send({ content: fake({ tokens: 100, intervalMs: 20 }) });
  const begun = await collect(sent, ({ text }) => text.includes('w2 '));
  const { turnId } = idsOf(sent);
  const stopping = apis[1].stop();
  const cut = await collect(sent);
  expect(cut.complete).toBe(false);
  await stopping;
  expect(await apis[1].exited).toEqual({ code: 0, signal: null });
  const lastEventId = Math.max(begun.lastId, cut.lastId);
  const rest = await collect(await here.open(`/chat/turns/${turnId}/stream`, { lastEventId }));
  expect(rest.complete).toBe(true);
  expect(rest.events[0]?.id).toBe(lastEventId + 1);
  const whole = await collect(await here.open(`/chat/turns/${turnId}/stream`));
  expect(whole.events).toEqual([...begun.events, ...cut.events, ...rest.events]);
});
