import type { ChatUser } from '../test/builders/chat.ts';
import { buildProduct, type TestProduct } from '../test/builders/product.ts';
import { collect, untilChunk } from '../test/support/sseClient.ts';
import { startTestStack, stopTestStack } from '../test/support/testStack.ts';
import { fillThread } from './support/fillThread.ts';
import { quantile } from './support/times.ts';

/**
 * Measures how a thread's times grow with its messages: `npx node bench/thread.ts`. Each figure is a median, with its
 * ratio to the thread of one message. The model is a fake that answers at once, so only Atrium is measured.
 */
const sizes = [1, 100, 1_000, 5_000];
const repeats = 15;
const maxContextTokens = 8_000;

type Measure = (user: ChatUser, threadId: string) => Promise<unknown>;

const measures: Record<string, Measure> = {
  'first page of messages (50)': (user, threadId) => user.get(`/api/threads/${threadId}/messages`),
  'last page of messages (50)': (user, threadId) =>
    user.get(`/api/threads/${threadId}/messages?cursor=${lastPage(threadId)}`),
  'list of threads': (user) => user.get(`/api/spaces/${user.spaceId}/threads`),
  'resume of an idle thread': (user, threadId) => user.fetch(`/chat/stream/${threadId}/stream`),
  'new turn, to its first token': async (user, threadId) => {
    const stream = await user.send({ content: 'Go on', threadId });
    const ended = await untilChunk(stream, ({ type }) => type === 'text-delta');
    const ms = performance.now();
    await collect(stream);
    return ended && ms;
  },
  'new turn, to its end': (user, threadId) => user.ask({ content: 'Go on', threadId }),
};

const totals = new Map<string, number>();
function lastPage(threadId: string): string {
  const ordinal = Math.max(0, (totals.get(threadId) ?? 1) - 26);
  return Buffer.from(`${ordinal} 1`).toString('base64url');
}

async function medianOf(measure: Measure, user: ChatUser, threadId: string): Promise<number> {
  const times: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const startedMs = performance.now();
    const endedMs = await measure(user, threadId);
    times.push((typeof endedMs === 'number' ? endedMs : performance.now()) - startedMs);
  }
  return quantile(times, 0.5);
}

async function benchSize(product: TestProduct, messages: number, results: Map<string, number[]>): Promise<void> {
  const user = await product.user();
  const body = { limits: { maxContextTokens } };
  await user.fetch(`/api/spaces/${user.spaceId}/chat-settings`, { method: 'PUT', body });
  const { threadId } = await user.ask({ content: 'The first message' });
  const turns = await fillThread(product.environment.database, threadId, messages);
  totals.set(threadId, turns);
  const before = product.provider.requests.length;
  const startedMs = performance.now();
  await user.ask({ content: 'Make room first', threadId });
  const calls = product.provider.requests.length - before - 1;
  process.stdout.write(
    `${messages} messages: the first turn made ${calls} summaries in ${(performance.now() - startedMs).toFixed(0)} ms\n`,
  );
  for (const [name, measure] of Object.entries(measures)) {
    results.set(name, [...(results.get(name) ?? []), await medianOf(measure, user, threadId)]);
  }
}

await startTestStack();
try {
  const product = await buildProduct({ ATRIUM_RATE_LIMIT_PER_MINUTE: '0' });
  try {
    const results = new Map<string, number[]>();
    // The first run compiles the code that later ones run.
    await benchSize(product, 1, new Map());
    for (const size of sizes) await benchSize(product, size, results);
    for (const [name, times] of results) {
      const cells = times.map(
        (time, index) => `${sizes[index]}: ${time.toFixed(1)} ms (×${(time / (times[0] ?? 1)).toFixed(2)})`,
      );
      process.stdout.write(`${name}\n  ${cells.join('   ')}\n`);
    }
  } finally {
    await product.close();
  }
} finally {
  await stopTestStack();
}
