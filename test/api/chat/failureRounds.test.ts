import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import type { FakeRequest, FakeScript } from '../../fakes/script.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';

const full = inFull('chat');

/**
 * Each way in which a provider fails, repeatedly: once before a good answer, and for ever. Two rounds here; thirty with
 * `ATRIUM_TEST_ROUNDS=30 npm test -- test/api/chat/failureRounds`.
 */
const rounds = Number(process.env.ATRIUM_TEST_ROUNDS ?? 2);
/** Longer than the pauses of a busy machine, which must not count as failures of the provider. */
const idleTimeoutSeconds = 5;
/**
 * Against hanging. Six attempts on two models, each with its pause (at most 8 s together per model) and, for a stall,
 * the idle timeout.
 */
const deadlineMs = 300_000;

const failures: Record<string, { script: FakeScript; code: string; kept?: string }> = {
  '429': { script: { status: 429 }, code: 'PROVIDER_RATE_LIMITED' },
  '429 with Retry-After': { script: { status: 429, headers: { 'retry-after': '1' } }, code: 'PROVIDER_RATE_LIMITED' },
  '529': { script: { status: 529 }, code: 'PROVIDER_OVERLOADED' },
  '502': { script: { status: 502 }, code: 'PROVIDER_FAILED' },
  'a cut': { script: { tokens: 9, fail: { how: 'cut', afterDeltas: 3 } }, code: 'PROVIDER_CUT', kept: 'w0 w1 w2 ' },
  'a stall': {
    script: { tokens: 9, fail: { how: 'stall', afterDeltas: 2 } },
    code: 'PROVIDER_STALLED',
    kept: 'w0 w1 ',
  },
  'bad JSON': {
    script: { tokens: 9, fail: { how: 'badJson', afterDeltas: 1 } },
    code: 'PROVIDER_BAD_RESPONSE',
    kept: 'w0 ',
  },
  'an end without a finish reason': { script: { tokens: 2, finishReason: null }, code: 'PROVIDER_CUT', kept: 'w0 w1 ' },
  'an empty answer': { script: { tokens: [] }, code: 'PROVIDER_EMPTY_ANSWER' },
};

/** The failures that are still to come, by the number of the message. */
const toFail = new Map<string, { script: FakeScript; times: number }>();

function respond({ body }: FakeRequest): FakeScript | undefined {
  const number = /message (\d+)\./.exec(JSON.stringify((body.messages as unknown[]).at(-1)))?.[1] ?? '';
  const plan = toFail.get(number);
  if (plan === undefined || plan.times === 0) return undefined;
  plan.times--;
  return plan.script;
}

type Outcome = Awaited<ReturnType<typeof askThrough>>;
const once = new Map<string, Promise<Outcome[]>>();
const forEver = new Map<string, Promise<Outcome[]>>();

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  const settings = {
    ATRIUM_COMPATIBLE_MODELS: 'fake-1,spare',
    ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS: String(idleTimeoutSeconds),
    ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  };
  product = await buildProduct(settings, respond);
  user = await product.user();
  // All kinds of failures run side by side: each mostly waits for the next attempt.
  for (const [name, { script }] of Object.entries(failures)) {
    once.set(name, askRounds(script, 1));
    forEver.set(name, askRounds(script, Number.POSITIVE_INFINITY));
  }
});
afterAll(() => product.close());

async function askThrough(script: FakeScript, times: number) {
  const number = String(toFail.size + 1);
  toFail.set(number, { script, times });
  const stream = await user.send({ content: `message ${number}.` });
  const { chunks, complete, text } = await collect(stream);
  const turn = await user.turn(idsOf(stream).turnId);
  return { chunks, complete, text, turn, answer: await user.answerOf(turn) };
}

/** Starts the rounds for one kind of failure. A rejection is reported by the test that awaits them. */
function askRounds(script: FakeScript, times: number): Promise<Outcome[]> {
  const outcomes = Promise.all(Array.from({ length: rounds }, () => askThrough(script, times)));
  outcomes.catch(() => undefined);
  return outcomes;
}

const noUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };

describe.each(Object.entries(failures))('%s', (name, { code, kept = '' }) => {
  test(
    `${rounds} turns that fail once are answered, counted once, and say what to discard`,
    async () => {
      expect.hasAssertions();
      for (const done of (await once.get(name)) ?? []) {
        expect(done).toMatchObject({ complete: true, text: 'Hello from the fake provider.' });
        expect(done.answer).toBe('Hello from the fake provider.');
        expect(done.turn).toMatchObject({ status: 'completed', finishReason: 'stop', error: null });
        expect(done.turn.usage).toEqual({ ...noUsage, inputTokens: 10, outputTokens: 3 });
        const begun = done.chunks.flatMap((chunk) => (chunk.type === 'text-start' ? [chunk.id] : []));
        const discarded = done.chunks.flatMap((chunk) => (chunk.type === 'data-attempt' ? chunk.data.discard : []));
        expect(discarded).toEqual(begun.slice(0, -1));
      }
    },
    deadlineMs,
  );

  full.test(
    `${rounds} turns that always fail end with the code of the failure, and keep what was said last`,
    async () => {
      expect.hasAssertions();
      for (const done of (await forEver.get(name)) ?? []) {
        expect(done.complete).toBe(true);
        expect(done.chunks.at(-1)).toMatchObject({ type: 'error', code });
        expect(done.chunks.filter(({ type }) => type === 'finish')).toEqual([]);
        expect(done.turn).toMatchObject({ status: 'failed', finishReason: null, error: { code }, usage: noUsage });
        expect(done.answer ?? '').toBe(kept);
      }
    },
    deadlineMs,
  );
});
