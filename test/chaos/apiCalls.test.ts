import { asUser, type ChatUser, idsOf } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../builders/product.ts';
import { inFull } from '../support/inFull.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { collect, untilChunk } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('chat');

/** Model calls that an API process makes, while the workflow of the turn runs in a worker in another process. */
const heartbeatSeconds = 2;
const limitSeconds = 9;
const words = (count: number) => Array.from({ length: count }, (_, word) => `w${word} `).join('');

let product: TestProduct;
let worker: ProductProcess;
/** The API that makes model calls. Each test that ends it starts a new one. */
let api: ProductProcess;
/** One person, at that API and at an API that makes no model calls. */
let user: ChatUser;
let reader: ChatUser;

beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: String(heartbeatSeconds),
    ATRIUM_MAX_SECONDS_PER_TURN: String(limitSeconds),
  });
  await product.process.stop();
  product.process = await startProduct(product.environment, 'api', { ATRIUM_API_CALLS_MODELS: 'false' });
  reader = await product.user();
  worker = await startProduct(product.environment, 'worker');
  await startApi();
});

afterAll(async () => {
  await api.stop();
  await worker.stop();
  await product.close();
});

async function startApi(): Promise<void> {
  api = await startProduct(product.environment, 'api');
  user = asUser({ url: api.apiUrl }, reader);
}

async function callOf(turnId: string): Promise<{ attempts: number; status: string; outputTokens: number }> {
  const [rows] = await product.environment.database.pool.query(
    'SELECT attempts, status, output_tokens AS outputTokens FROM model_calls WHERE turn_id = ? AND step = 0',
    [turnId],
  );
  return (rows as Awaited<ReturnType<typeof callOf>>[])[0] ?? { attempts: 0, status: 'none', outputTokens: 0 };
}

/** Sends a message, waits for the first words, and opens the turn's stream at the other API. */
async function begin(name: string, script: { tokens: number; intervalMs: number }) {
  const sent = await user.send({ content: fake(script, name), modelId: 'fake-1' });
  const { turnId } = idsOf(sent);
  await untilChunk(sent, ({ type }) => type === 'text-delta');
  return { turnId, stream: await reader.open(`/chat/turns/${turnId}/stream`) };
}

async function expectAnswer(turnId: string, count: number): Promise<void> {
  const turn = await reader.ended(turnId);
  expect(turn.status).toBe('completed');
  expect(await reader.answerOf(turn)).toBe(words(count));
}

full.it('A long call is made only once', async () => {
  // Takes longer than the local activity waits and than a hold lasts.
  const { turnId, stream } = await begin('long', { tokens: 140, intervalMs: 50 });
  expect((await collect(stream)).complete).toBe(true);
  await expectAnswer(turnId, 140);
  expect(await callOf(turnId)).toEqual({ attempts: 1, status: 'completed', outputTokens: 140 });
  expect(requestsWith(product.provider, 'long')).toHaveLength(1);
});

it('A worker repeats the call of a killed API', async () => {
  const { turnId, stream } = await begin('killed', { tokens: 60, intervalMs: 20 });
  await api.kill('SIGKILL');
  const read = await collect(stream);
  expect(read.chunks.filter(({ type }) => type === 'data-attempt')).toHaveLength(1);
  expect(read.text).toBe(words(60));
  await expectAnswer(turnId, 60);
  expect(await callOf(turnId)).toEqual({ attempts: 2, status: 'completed', outputTokens: 60 });
  await startApi();
});

it('A worker repeats the call of a frozen API, which writes nothing more when it thaws', async () => {
  const { turnId, stream } = await begin('frozen', { tokens: 60, intervalMs: 20 });
  await api.kill('SIGSTOP');
  const read = await collect(stream);
  expect(read.text).toBe(words(60));
  await expectAnswer(turnId, 60);
  const { lastSeq } = await reader.turn(turnId);
  await api.kill('SIGCONT');
  // The thawed API answers again, and has found out by then that it lost the turn.
  const next = await user.ask({ content: fake({ tokens: ['Thawed.'] }), modelId: 'fake-1' });
  expect(next.text).toBe('Thawed.');
  expect(await reader.turn(turnId)).toMatchObject({ lastSeq, status: 'completed' });
  expect(await callOf(turnId)).toMatchObject({ attempts: 2, outputTokens: 60 });
});

it('An API that stops hands its call over at once', async () => {
  const { turnId, stream } = await begin('handed over', { tokens: 150, intervalMs: 20 });
  await api.stop();
  const [[given]] = (await product.environment.database.pool.query(
    'SELECT held_until AS heldUntil FROM model_calls WHERE turn_id = ? AND step = 0',
    [turnId],
  )) as unknown as [[{ heldUntil: Date | null }]];
  expect(given.heldUntil).toBeNull();
  expect((await collect(stream)).text).toBe(words(150));
  await expectAnswer(turnId, 150);
  expect(await callOf(turnId)).toMatchObject({ attempts: 2, status: 'completed' });
  await startApi();
});

it('An API that stops finishes a call that ends within its grace period', async () => {
  const { turnId, stream } = await begin('finished', { tokens: 40, intervalMs: 20 });
  await api.stop();
  expect((await collect(stream)).chunks.some(({ type }) => type === 'data-attempt')).toBe(false);
  await expectAnswer(turnId, 40);
  expect(await callOf(turnId)).toMatchObject({ attempts: 1 });
  await startApi();
});

it.each([
  { refusal: 'for good', script: { status: 401, body: '{"error":{"message":"no"}}' }, requests: 1, leastMs: 0 },
  {
    refusal: 'for a while',
    script: { status: 429, headers: { 'retry-after': '1' }, body: '{"error":{"message":"slow"}}' },
    requests: 3,
    leastMs: 1_000,
  },
])('A worker retries as the provider says: the provider refuses $refusal', async ({ script, requests, leastMs }) => {
  const name = `refused ${script.status}`;
  const { turnId } = await user.send({ content: fake(script, name), modelId: 'fake-1' }).then(idsOf);
  expect(await reader.ended(turnId)).toMatchObject({ status: 'failed' });
  const times = requestsWith(product.provider, name).map(({ receivedMs }) => receivedMs);
  expect(times).toHaveLength(requests);
  for (const [at, time] of times.entries()) {
    if (at > 0) expect(time - (times[at - 1] ?? 0)).toBeGreaterThanOrEqual(leastMs);
  }
});

it('A call ends when its turn is stopped', async () => {
  const { turnId, stream } = await begin('stopped', { tokens: 400, intervalMs: 20 });
  await reader.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(await reader.ended(turnId)).toMatchObject({ status: 'stopped' });
  await waitFor('the API to hang up', () =>
    requestsWith(product.provider, 'stopped').every(({ closedByClient }) => closedByClient),
  );
});

full.it('A call ends at the time limit of its turn, and its text is kept', async () => {
  const { turnId, stream } = await begin('endless', { tokens: 10_000, intervalMs: 20 });
  const read = await collect(stream);
  expect(read.chunks.at(-1)).toMatchObject({ type: 'error', code: 'TIME_LIMIT' });
  expect(read.chunks.some(({ type }) => type === 'data-attempt')).toBe(false);
  expect(read.text.length).toBeGreaterThan(1_000);
  expect(await reader.ended(turnId)).toMatchObject({ status: 'failed', error: { code: 'TIME_LIMIT' } });
  expect(await callOf(turnId)).toMatchObject({ attempts: 1, status: 'stopped' });
});
