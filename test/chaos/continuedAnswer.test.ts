import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import type { FakeRequest, FakeScript } from '../fakes/script.ts';
import { waitFor } from '../support/waitFor.ts';
import { newReading, sendAndRead } from './persistentReader.ts';

// A worker is killed while the model streams. Models that can continue go on after their own words.

const words = Array.from({ length: 80 }, (_, number) => `w${number}`);
const intervalMs = 25;
/** The models that were already asked. */
const asked = new Set<string>();
const folder = mkdtempSync(join(tmpdir(), 'atrium-models-'));
let product: TestProduct;

interface Said {
  role: string;
  content: string;
}

const messagesOf = (request: Pick<FakeRequest, 'body'> | undefined) => (request?.body.messages ?? []) as Said[];

/**
 * Answers from the beginning. If the prompt ends with words of the assistant, answers what follows them, with a leading
 * space.
 */
function respond({ body }: FakeRequest): FakeScript {
  const last = messagesOf({ body }).at(-1);
  if (last?.role !== 'assistant') {
    // The first answer stalls, so that it cannot end before the process is killed.
    const isFirst = !asked.has(body.model);
    asked.add(body.model);
    return {
      tokens: words.map((word) => `${word} `),
      intervalMs,
      ...(isFirst && { fail: { how: 'stall', afterDeltas: 40 } }),
    };
  }
  const count = last.content.split(' ').length;
  const usage = { inputTokens: 1_000 + count, outputTokens: words.length - count };
  return { tokens: words.slice(count).map((word) => ` ${word}`), usage };
}

beforeAll(async () => {
  const file = join(folder, 'models.yaml');
  const model = (id: string, capabilities: object) => ({ id, provider: 'compatible', model: id, capabilities });
  const models = [model('continuing', { continues: true }), model('other', {})];
  writeFileSync(file, JSON.stringify({ models }));
  product = await buildProduct({ ATRIUM_MODELS_FILE: file, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' }, respond);
});

afterAll(async () => {
  await product.close();
  rmSync(folder, { recursive: true });
});

/** Asks for an answer, and kills the process while it streams. */
async function answerOverKill(modelId: string) {
  const user = await product.user();
  const content = `message to ${modelId}`;
  const read = newReading();
  const reading = sendAndRead(user, { content, modelId, outboxItemId: modelId }, read);
  await waitFor('the first words', () => read.lines.size > 10); // A client is sent only chunks that are kept.
  await product.process.kill('SIGKILL');
  await product.restart();
  const { lines, turnId } = await reading;
  const chunks = [...lines.values()].map((line) => JSON.parse(line) as UiChunk);
  const turn = await user.ended(turnId);
  const requests = product.provider.requests.filter(({ body }) => body.model === modelId);
  return { chunks, turn, requests, answer: await user.answerOf(turn) };
}

const textOf = (chunks: UiChunk[]) => chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');
const count = (chunks: UiChunk[], type: UiChunk['type']) => chunks.filter((chunk) => chunk.type === type).length;

test('A model that can continue goes on after the kept words in the same part, and they count as input', async () => {
  const { chunks, turn, requests, answer } = await answerOverKill('continuing');
  expect(turn.status).toBe('completed');
  expect(textOf(chunks)).toBe(words.join(' '));
  expect(answer).toBe(words.join(' '));
  expect(
    ['data-attempt', 'start-step', 'text-start', 'text-end', 'finish-step'].map((type) => count(chunks, type as never)),
  ).toEqual([0, 1, 1, 1, 1]);
  expect(requests).toHaveLength(2);
  const [question, last] = messagesOf(requests[1]).slice(-2);
  const kept = last?.content.split(' ').length ?? 0;
  expect([question?.role, last]).toEqual(['user', { role: 'assistant', content: words.slice(0, kept).join(' ') }]);
  expect(kept).toBeGreaterThan(5);
  expect(turn.usage).toMatchObject({ inputTokens: 1_000 + kept, outputTokens: words.length - kept });
});

test('The answer begins again if the model cannot continue', async () => {
  const { chunks, turn, requests, answer } = await answerOverKill('other');
  expect(turn.status).toBe('completed');
  expect(answer).toBe(`${words.join(' ')} `);
  expect(count(chunks, 'data-attempt')).toBe(1);
  expect(messagesOf(requests[1]).at(-1)?.role).toBe('user');
});
