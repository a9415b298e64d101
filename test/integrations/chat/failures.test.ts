import { ProviderError, providerErrorMessage } from '../../../integrations/chat/errors.ts';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import type { FakeScript } from '../../fakes/script.ts';
import { answer, providers, runnerFor, textOf, user } from './support.ts';

let fake: FakeProvider;
beforeAll(async () => {
  fake = await startFakeProvider();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

const tokens = ['a ', 'b ', 'c ', 'd '];
const afterTwo = (how: NonNullable<FakeScript['fail']>['how']): FakeScript => ({
  tokens,
  intervalMs: 5,
  fail: { how, afterDeltas: 2 },
});
const failures: [string, FakeScript, string, { retryable: boolean; retryAfterMs?: number }][] = [
  ['429', { status: 429 }, 'PROVIDER_RATE_LIMITED', { retryable: true }],
  [
    '429 with Retry-After',
    { status: 429, headers: { 'retry-after': '7' } },
    'PROVIDER_RATE_LIMITED',
    { retryable: true, retryAfterMs: 7000 },
  ],
  ['529', { status: 529 }, 'PROVIDER_OVERLOADED', { retryable: true }],
  ['500', { status: 500 }, 'PROVIDER_FAILED', { retryable: true }],
  ['502 of a proxy', { status: 502, body: '<html>Bad gateway</html>' }, 'PROVIDER_FAILED', { retryable: true }],
  [
    '503 with Retry-After',
    { status: 503, headers: { 'retry-after': '1' } },
    'PROVIDER_FAILED',
    { retryable: true, retryAfterMs: 1000 },
  ],
  ['401', { status: 401 }, 'PROVIDER_AUTH', { retryable: false }],
  ['404', { status: 404 }, 'PROVIDER_MODEL_UNKNOWN', { retryable: false }],
  ['400', { status: 400 }, 'PROVIDER_REFUSED', { retryable: false }],
  [
    'a prompt that is too long',
    {
      status: 400,
      body: '{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8","code":"context_length_exceeded"}}',
    },
    'CONTEXT_TOO_LONG',
    { retryable: false },
  ],
  [
    'a used-up account',
    {
      status: 429,
      body: '{"error":{"type":"insufficient_quota","message":"You exceeded your current quota","code":"insufficient_quota"}}',
    },
    'PROVIDER_QUOTA',
    { retryable: false },
  ],
  ['a cut', afterTwo('cut'), 'PROVIDER_CUT', { retryable: true }],
  [
    'a cut inside an event',
    { tokens, intervalMs: 5, fail: { how: 'cut', afterBytes: 700 } },
    'PROVIDER_CUT',
    { retryable: true },
  ],
  ['a reset', afterTwo('reset'), 'PROVIDER_CUT', { retryable: true }],
  ['a stall', afterTwo('stall'), 'PROVIDER_STALLED', { retryable: true }],
  [
    'a stall before the first token',
    { tokens: 3, fail: { how: 'stall', afterDeltas: 0 } },
    'PROVIDER_STALLED',
    { retryable: true },
  ],
  ['headers that never come', { headersDelayMs: 20_000 }, 'PROVIDER_STALLED', { retryable: true }],
  ['bad JSON', afterTwo('badJson'), 'PROVIDER_BAD_RESPONSE', { retryable: true }],
  ['an end without a finish reason', afterTwo('end'), 'PROVIDER_CUT', { retryable: true }],
  ['a well-formed end without a finish reason', { tokens, finishReason: null }, 'PROVIDER_CUT', { retryable: true }],
  ['an empty answer', { tokens: 0 }, 'PROVIDER_EMPTY_ANSWER', { retryable: true }],
  ['reasoning and then nothing', { reasoning: ['hm'], tokens: 0 }, 'PROVIDER_EMPTY_ANSWER', { retryable: true }],
];

describe.each(providers)('a call to %s', (_provider, modelId) => {
  test.each(failures)('fails with the right code after %s', async (_name, script, code, expected) => {
    fake.enqueue(script);
    // Only permanent silence may count as a stall, since a busy machine has pauses.
    const idleTimeoutMs = code === 'PROVIDER_STALLED' ? 250 : 60_000;
    const error = await failureOf(answer(runnerFor(fake.url, { idleTimeoutMs }), { modelId }));
    expect({ code: error.code, retryable: error.retryable, retryAfterMs: error.retryAfterMs }).toEqual({
      code,
      retryAfterMs: undefined,
      ...expected,
    });
    expect(error.message).not.toMatch(/fake|own text|html|quota/i);
    expect(error.cause ?? code).toBeTruthy();
    await fake.closed(await fake.request(0));
    expect(fake.requests).toHaveLength(1);
  });

  test('fails after an error inside the stream', async () => {
    fake.enqueue(afterTwo('errorEvent'));
    const error = await failureOf(answer(runnerFor(fake.url), { modelId }));
    expect(['PROVIDER_OVERLOADED', 'PROVIDER_FAILED']).toContain(error.code);
  });

  test('passes on the text that came before a cut', async () => {
    fake.enqueue({ tokens: 40, intervalMs: 2, fail: { how: 'cut', afterDeltas: 30 } });
    let text = '';
    const run = runnerFor(fake.url).run(
      { modelId, prompt: [user('hello')], abortSignal: new AbortController().signal },
      (part) => {
        if (part.type === 'text-delta') text += part.delta;
      },
    );
    await expect(run).rejects.toMatchObject({ code: 'PROVIDER_CUT' });
    expect('w0 w1 w2 '.startsWith(text.slice(0, 9))).toBe(true);
    expect(text.length).toBeGreaterThan(60);
  });

  test('does not count as stalled while the server sends keep-alives', async () => {
    fake.enqueue({ tokens: ['late'], firstTokenDelayMs: 600, keepAliveMs: 50 });
    const { parts } = await answer(runnerFor(fake.url, { idleTimeoutMs: 250 }), { modelId });
    expect(textOf(parts)).toBe('late');
  });
});

test('a call to a provider that does not listen fails with PROVIDER_UNAVAILABLE', async () => {
  const gone = await startFakeProvider();
  await gone.stop();
  const error = await failureOf(answer(runnerFor(gone.url), { modelId: 'local' }));
  expect(error).toMatchObject({ code: 'PROVIDER_UNAVAILABLE', retryable: true, fallback: true });
  expect(providerErrorMessage('PROVIDER_UNAVAILABLE')).toMatch(/cannot be reached/);
  expect(providerErrorMessage('PROVIDER_FAILED')).toMatch(/answered with an error/);
});

test('a call fails only after the idle timeout has passed without any data', async () => {
  // The whole answer takes longer than the idle timeout, and each pause in it is much shorter.
  fake.enqueue({ tokens: 30, intervalMs: 150, fail: { how: 'stall', afterDeltas: 20 } });
  await failureOf(answer(runnerFor(fake.url, { idleTimeoutMs: 2_000 }), { modelId: 'local' }));
  const request = await fake.closed(await fake.request(0));
  expect(request.deltasSent).toBe(20);
  expect(request.closedByClient).toBe(true);
});

async function failureOf(run: Promise<unknown>): Promise<ProviderError> {
  const error: unknown = await run.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ProviderError)) throw error;
  return error;
}
