import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../../builders/product.ts';
import { collect, untilChunk } from '../../support/sseClient.ts';

/** A thread has one turn at a time: what happens to a message that comes during a turn. */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

/** A thread whose turn runs until it is stopped, since the provider stalls. */
async function busyThread(script = { tokens: 3, fail: { how: 'stall' as const } }) {
  const stream = await user.send({ content: fake(script) });
  await collect(stream, ({ text }) => text !== '');
  return { stream, ...idsOf(stream) };
}

const stop = (turnId: string) => user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });

test('Messages wait in order, and each is answered with those before it', async () => {
  const running = await user.send({ content: fake({ tokens: 250, intervalMs: 20 }, 'first') });
  const { threadId } = idsOf(running);
  await collect(running, ({ text }) => text !== '');
  const waiting = [];
  for (const content of ['second', 'third', 'fourth']) waiting.push(await user.send({ content, threadId }));

  const queued = await Promise.all(waiting.map((stream) => user.turn(idsOf(stream).turnId)));
  expect(queued.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued']);
  expect(queued.every(({ startedAt }) => startedAt === null)).toBe(true);
  // A queued message is in the thread already.
  const seen = await user.messages(threadId);
  expect(seen.map(({ id }) => id)).toEqual(expect.arrayContaining(queued.map(({ userMessageId }) => userMessageId)));

  const answers = await Promise.all(waiting.map((stream) => collect(stream)));
  for (const { chunks, text } of answers) {
    expect(text).toBe('Hello from the fake provider.');
    const statuses = chunks.flatMap((chunk) => (chunk.type === 'data-turn' ? [chunk.data.status] : []));
    expect(statuses).toEqual(['queued', 'running', 'completed']);
  }
  const turns = await Promise.all(queued.map(({ id }) => user.turn(id)));
  const times = turns.flatMap(({ startedAt, endedAt }) => [Date.parse(startedAt ?? ''), Date.parse(endedAt ?? '')]);
  expect(times).toEqual([...times].sort((a, b) => a - b));

  const roles = (await user.messages(threadId)).map(({ role }) => role);
  expect(roles).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant', 'user', 'assistant']);
  // The third message's prompt has the answer to the second, and not the fourth.
  const [third] = requestsWith(product.provider, 'third');
  expect(third?.body.messages).toHaveLength(6);
  expect(await user.get(`/api/threads/${threadId}`)).toMatchObject({ activeTurnId: null });
});

test('With onBusy "reject", a message gets 409 and leaves nothing', async () => {
  const { threadId, turnId } = await busyThread();
  const body = { content: 'not now', threadId, onBusy: 'reject', outboxItemId: 'rejected' };
  const response = await user.fetch('/chat/stream', { method: 'POST', body });
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ code: 'THREAD_BUSY' });
  expect(await user.messages(threadId)).toHaveLength(1);
  await stop(turnId);
  await user.ended(turnId);
  // The refused outbox item can still be used.
  expect((await user.ask(body)).text).toBe('Hello from the fake provider.');
});

test('With onBusy "interrupt", the running turn stops, keeps what it said, and makes room', async () => {
  const { threadId, turnId, stream } = await busyThread();
  const next = await user.ask({ content: 'Rather this', threadId, onBusy: 'interrupt' });
  expect(next.text).toBe('Hello from the fake provider.');
  expect(await user.turn(turnId)).toMatchObject({ status: 'stopped' });
  expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  const stopped = (await user.messages(threadId)).find(
    (message) => message.turnId === turnId && message.role === 'assistant',
  );
  expect(stopped?.parts).toMatchObject([{ type: 'step-start' }, { type: 'text', text: 'w0 w1 w2 ', state: 'done' }]);
  expect(stopped?.metadata).toMatchObject({ status: 'stopped' });
});

test('a queued turn that is stopped never reaches the provider, and the one behind it moves up', async () => {
  const { threadId, turnId } = await busyThread();
  const second = await user.send({ content: 'never asked', threadId });
  const third = await user.send({ content: 'asked at last', threadId });
  const stopped = await stop(idsOf(second).turnId);
  expect(await stopped.json()).toMatchObject({ status: 'stopped', startedAt: null });
  const ended = await collect(second);
  expect(ended.complete).toBe(true);
  expect(ended.chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  await stop(turnId);
  expect((await collect(third)).text).toBe('Hello from the fake provider.');
  expect(requestsWith(product.provider, 'never asked')).toEqual([]);
  expect(await user.turn(idsOf(second).turnId)).toMatchObject({ status: 'stopped', usage: { inputTokens: 0 } });
});

test('A failed turn makes room for the next one', async () => {
  const failing = await user.send({ content: fake({ headersDelayMs: 200, status: 400 }) });
  const { threadId } = idsOf(failing);
  const next = await user.ask({ content: 'after the failure', threadId });
  expect(next.text).toBe('Hello from the fake provider.');
  expect((await collect(failing)).chunks.at(-1)).toMatchObject({ type: 'error', code: 'PROVIDER_REFUSED' });
});

test('50 messages can wait behind a running one, and the next gets 409', async () => {
  const { threadId, turnId } = await busyThread();
  const waiting = [];
  for (let index = 0; index < 50; index++) waiting.push(await user.send({ content: `waiting ${index}`, threadId }));
  const response = await user.fetch('/chat/stream', { method: 'POST', body: { content: 'one too many', threadId } });
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ code: 'QUEUE_FULL' });
  await Promise.all(waiting.map((stream) => stop(idsOf(stream).turnId)));
  await stop(turnId);
  await Promise.all(waiting.map((stream) => collect(stream)));
});

test('A busy thread does not hold up another one', async () => {
  const { turnId } = await busyThread();
  expect((await user.ask({ content: 'Elsewhere' })).text).toBe('Hello from the fake provider.');
  await stop(turnId);
});

test('a reader of a queued turn sees it begin', async () => {
  const { threadId, turnId } = await busyThread();
  const queued = await user.send({ content: 'soon', threadId });
  await untilChunk(queued, (chunk) => chunk.type === 'data-turn' && chunk.data.status === 'queued');
  await stop(turnId);
  await untilChunk(queued, (chunk) => chunk.type === 'data-turn' && chunk.data.status === 'running');
  expect((await collect(queued)).complete).toBe(true);
});
