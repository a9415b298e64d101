import { type ChatUser, idsOf, type TurnBody } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../../builders/product.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

async function stop(turnId: string): Promise<TurnBody> {
  const response = await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  expect(response.status).toBe(200);
  return (await response.json()) as TurnBody;
}

/** The request to the provider, once it was made. */
const asked = (text: string) => waitFor('the provider to be asked', () => requestsWith(product.provider, text)[0]);

test('Stopping a turn during its answer closes the connection to the provider and keeps what was said', async () => {
  // Without the stop, the answer would go on for hours.
  const stream = await user.send({ content: fake({ tokens: 500_000, intervalMs: 20 }, 'mid-answer') });
  const begun = await collect(stream, ({ text }) => text.includes('w3 '));
  const { turnId } = idsOf(stream);
  await stop(turnId);
  const request = await product.provider.closed(await asked('mid-answer'));
  expect(request.closedByClient).toBe(true);

  const rest = await collect(stream);
  expect(rest.complete).toBe(true);
  expect(rest.chunks.slice(-4).map(({ type }) => type)).toEqual(['text-end', 'finish-step', 'data-turn', 'abort']);
  expect(rest.chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  const turn = await user.ended(turnId);
  expect(turn).toMatchObject({ status: 'stopped', finishReason: null, error: null });
  const whole = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(whole.events).toEqual([...begun.events, ...rest.events]);
  expect(await user.answerOf(turn)).toBe(whole.text);
  expect(whole.text).toMatch(/^w0 w1 w2 w3 /);
});

const anHourMs = 3_600_000;

test.each([
  ['before the first token', { firstTokenDelayMs: anHourMs, tokens: 3 }],
  ['before the provider’s headers', { headersDelayMs: anHourMs, tokens: 3 }],
])('A turn can be stopped %s', async (name, script) => {
  const stream = await user.send({ content: fake(script, name) });
  const { turnId, threadId } = idsOf(stream);
  const request = await asked(name);
  await stop(turnId);
  expect((await product.provider.closed(request)).closedByClient).toBe(true);
  expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  // A turn that said nothing leaves no message.
  expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user']);
});

test('A turn can be stopped while it waits for another attempt', async () => {
  const script = { status: 429, headers: { 'retry-after': '30' } };
  const stream = await user.send({ content: fake(script, 'patience') });
  const { turnId } = idsOf(stream);
  await product.provider.closed(await asked('patience'));
  await stop(turnId);
  expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
});

test('A turn can be stopped right after it was sent', async () => {
  for (let round = 0; round < 10; round++) {
    const stream = await user.send({ content: fake({ tokens: 500, intervalMs: 20 }) });
    const { turnId } = idsOf(stream);
    await stop(turnId);
    expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
    expect(await user.turn(turnId)).toMatchObject({ status: 'stopped' });
  }
  // No request is left running at the provider.
  await waitFor('all requests to be over', () =>
    product.provider.requests.every(({ closedMs }) => closedMs !== undefined),
  );
});

test('Repeated and simultaneous stops are one stop', async () => {
  const stream = await user.send({ content: fake({ tokens: 500, intervalMs: 20 }) });
  const { turnId } = idsOf(stream);
  await collect(stream, ({ text }) => text !== '');
  await Promise.all([stop(turnId), stop(turnId), stop(turnId)]);
  const { chunks } = await collect(stream);
  expect(chunks.filter(({ type }) => type === 'abort')).toHaveLength(1);
  const ended = await user.ended(turnId);
  expect(await stop(turnId)).toEqual(ended);
});

test('Stopping a turn after its end changes nothing', async () => {
  const { turnId, events } = await user.ask({ content: 'Done already' });
  const before = await user.turn(turnId);
  expect(await stop(turnId)).toEqual(before);
  expect(before).toMatchObject({ status: 'completed', finishReason: 'stop' });
  expect((await collect(await user.open(`/chat/turns/${turnId}/stream`))).events).toEqual(events);

  const failed = await user.ask({ content: fake({ status: 400 }) });
  expect(await stop(failed.turnId)).toMatchObject({ status: 'failed', error: { code: 'PROVIDER_REFUSED' } });
});

test('The thread goes on after a stop, and the model sees how far the answer came', async () => {
  const stream = await user.send({ content: fake({ tokens: ['Half ', 'an answer'], fail: { how: 'stall' } }) });
  const { turnId, threadId } = idsOf(stream);
  await collect(stream, ({ text }) => text === 'Half an answer');
  await stop(turnId);
  await collect(stream);
  const next = await user.ask({ content: 'go on then', threadId });
  expect(next.text).toBe('Hello from the fake provider.');
  const [request] = requestsWith(product.provider, 'go on then');
  expect(JSON.stringify(request?.body.messages)).toContain('Half an answer');
});

test('404 for stopping an unknown turn', async () => {
  const response = await user.fetch('/chat/turns/trn_none/stop', { method: 'POST' });
  expect(response.status).toBe(404);
});
