import { type ChatUser, textOf } from '../../builders/chat.ts';
import { buildProduct, rolesOf, type TestProduct } from '../../builders/product.ts';
import type { FakeRequest, FakeScript } from '../../fakes/script.ts';

/** How a turn deals with a provider that fails, and with a model that calls tools. */
let product: TestProduct;
let user: ChatUser;
let silence: ReturnType<typeof askThrough>;
beforeAll(async () => {
  product = await buildProduct(
    {
      ATRIUM_COMPATIBLE_MODELS: 'fake-1,spare',
      ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS: '1',
      ATRIUM_MAX_STEPS_PER_TURN: '4',
    },
    nextScript,
  );
  user = await product.user();
  // Three attempts on each of two models, with a second of silence each: started now, and checked last.
  silence = askThrough({ tokens: ['And then'], fail: { how: 'stall' } });
});
afterAll(() => product.close());

/**
 * How the provider answers the requests for a message: one script after the other, and the last one for ever.
 * `undefined` is a good answer.
 */
const scripts = new Map<string, (FakeScript | undefined)[]>();

function nextScript({ body }: FakeRequest): FakeScript | undefined {
  const said = JSON.stringify(body.messages);
  const left = [...scripts].findLast(([message]) => said.includes(message))?.[1] ?? [];
  return left.length > 1 ? left.shift() : left[0];
}

const call = (id: string, name: string, args = '{"a":1}') => ({ id, name, arguments: args });

/**
 * Asks while the provider answers by these scripts. Each message is different, so that several can be asked side by
 * side.
 */
async function askThrough(...answers: (FakeScript | undefined)[]) {
  const content = `message ${scripts.size + 1}.`;
  scripts.set(content, answers);
  const answer = await user.ask({ content });
  expect(answer.complete).toBe(true);
  const turn = await user.turn(answer.turnId);
  const attempts = answer.chunks.flatMap((chunk) => (chunk.type === 'data-attempt' ? [chunk.data] : []));
  const requests = product.provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(content));
  return { answer, turn, last: answer.chunks.at(-1), attempts, requests };
}

const well = undefined;
const partsOf = async (threadId: string) => (await user.messages(threadId)).at(-1)?.parts ?? [];

describe('A temporary failure', () => {
  test('A turn that fails before its first word is answered at the second attempt', async () => {
    const failures: FakeScript[] = [
      { status: 429 },
      { status: 500 },
      { status: 529 },
      { tokens: 0, fail: { how: 'reset' } },
      { fail: { how: 'badJson', afterDeltas: 0 } },
      { tokens: [] },
    ];
    for (const { answer, turn, last, attempts, requests } of await Promise.all(
      failures.map((script) => askThrough(script, well)),
    )) {
      expect(last).toMatchObject({ type: 'finish', finishReason: 'stop' });
      expect(answer.text).toBe('Hello from the fake provider.');
      expect(attempts).toMatchObject([{ step: 0, attempt: 2 }]);
      expect(turn).toMatchObject({ status: 'completed', error: null, usage: { inputTokens: 10, outputTokens: 3 } });
      expect(requests.map(({ body }) => body.model)).toEqual(['fake-1', 'fake-1']);
    }
  });

  test('The second attempt waits as long as Retry-After says', async () => {
    const { turn, requests } = await askThrough({ status: 429, headers: { 'retry-after': '2' } }, well);
    expect(turn.status).toBe('completed');
    expect((requests[1]?.receivedMs ?? 0) - (requests[0]?.receivedMs ?? 0)).toBeGreaterThanOrEqual(2_000);
  });

  test('An answer that fails in the middle is begun again, and its first words are taken back', async () => {
    const failures: FakeScript[] = [
      { tokens: 9, fail: { how: 'cut', afterDeltas: 4 } },
      // The pauses let Atrium read the deltas: a reset connection loses unread data.
      { tokens: 9, intervalMs: 100, fail: { how: 'reset', afterDeltas: 4 } },
      { tokens: 9, fail: { how: 'stall', afterDeltas: 4 } },
      { tokens: 4, finishReason: null },
      { tokens: 9, fail: { how: 'end', afterDeltas: 4 } },
      { tokens: 9, fail: { how: 'errorEvent', afterDeltas: 4 } },
    ];
    for (const { answer, turn, attempts } of await Promise.all(failures.map((script) => askThrough(script, well)))) {
      const begun = answer.chunks.flatMap((chunk) => (chunk.type === 'text-start' ? [chunk.id] : []));
      expect(begun).toHaveLength(2);
      expect(attempts).toEqual([{ step: 0, attempt: 2, discard: [begun[0]] }]);
      // Clients need each part to be closed before the next attempt.
      const order = answer.chunks.map(({ type }) => type).filter((type) => /text-(start|end)|attempt/.test(type));
      expect(order).toEqual(['text-start', 'text-end', 'data-attempt', 'text-start', 'text-end']);
      expect(answer.text).toBe('Hello from the fake provider.');
      expect(await user.answerOf(turn)).toBe('Hello from the fake provider.');
      expect(turn).toMatchObject({ status: 'completed', usage: { inputTokens: 10, outputTokens: 3 } });
    }
  });
});

describe('A lasting failure', () => {
  test('After three attempts on each model, the turn ends with an error chunk and keeps the last words', async () => {
    const { answer, turn, last, requests } = await askThrough({ tokens: ['Almost', ' there'], fail: { how: 'cut' } });
    const models = ['fake-1', 'fake-1', 'fake-1', 'spare', 'spare', 'spare'];
    expect(requests.map(({ body }) => body.model)).toEqual(models);
    expect(last).toMatchObject({ type: 'error', code: 'PROVIDER_CUT', errorText: expect.any(String) });
    expect(turn).toMatchObject({ status: 'failed', finishReason: null, error: { code: 'PROVIDER_CUT' } });
    expect(answer.chunks.filter(({ type }) => type === 'finish')).toEqual([]);
    expect(answer.text).toBe('Almost there');
    expect(await user.answerOf(turn)).toBe('Almost there');
    expect(turn.usage).toEqual({ inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 });
  });

  test('An answer without a finish reason is a failure', async () => {
    const { answer, turn, last } = await askThrough({ tokens: ['Is this all?'], finishReason: null });
    expect(last).toMatchObject({ type: 'error', code: 'PROVIDER_CUT' });
    expect(turn).toMatchObject({ status: 'failed', finishReason: null });
    expect(answer.text).toBe('Is this all?');
  });

  test('Silence of the provider is a failure', async () => {
    const silent = await silence;
    expect(silent.last).toMatchObject({ type: 'error', code: 'PROVIDER_STALLED' });
    expect(silent.turn).toMatchObject({ status: 'failed', finishReason: null });
    expect(silent.answer.text).toBe('And then');
    // Atrium hung up, not the provider.
    expect(silent.requests.map(({ closedByClient }) => closedByClient)).toEqual(silent.requests.map(() => true));
  });

  test('a refused request is not sent again, to any model', async () => {
    const { turn, last, requests } = await askThrough({ status: 400 });
    expect(requests).toHaveLength(1);
    expect(last).toMatchObject({ type: 'error', code: 'PROVIDER_REFUSED' });
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'PROVIDER_REFUSED' } });
    const next = await user.ask({ content: 'The thread goes on', threadId: turn.threadId, modelId: 'demo' });
    expect(next.chunks.at(-1)).toMatchObject({ type: 'finish' });
  });

  test('A refused key or a Retry-After of an hour makes the turn go to the next model at once', async () => {
    const failures: FakeScript[] = [{ status: 401 }, { status: 429, headers: { 'retry-after': '3600' } }];
    for (const { answer, turn, requests } of await Promise.all(failures.map((script) => askThrough(script, well)))) {
      expect(requests.map(({ body }) => body.model)).toEqual(['fake-1', 'spare']);
      expect(answer.text).toBe('Hello from the fake provider.');
      expect(turn.status).toBe('completed');
    }
  });

  test('The provider’s error text does not reach clients', async () => {
    for (const { answer, turn } of await Promise.all([400, 401, 404].map((status) => askThrough({ status })))) {
      expect(turn).toMatchObject({ status: 'failed', error: { detail: expect.stringMatching(/\w+\.$/) } });
      const said = JSON.stringify([answer.events, turn, await user.messages(turn.threadId)]);
      expect(said).not.toMatch(/own text|127\.0\.0\.1|compatible|stack/);
    }
  });
});

describe('tool calls', () => {
  test('Tool calls run side by side, and the model gets their results', async () => {
    const { answer, turn, requests } = await askThrough(
      {
        tokens: ['Let me look.'],
        toolCalls: [call('one', 'search', '{"q":"x"}'), call('two', 'lookUp', '{}')],
        usage: { inputTokens: 7, outputTokens: 5 },
      },
      well,
    );
    expect(answer.chunks.filter(({ type }) => type === 'start-step')).toHaveLength(2);
    const made = answer.chunks.flatMap((chunk) => (chunk.type === 'tool-input-available' ? [chunk] : []));
    expect(made).toMatchObject([
      { toolName: 'search', input: { q: 'x' }, dynamic: true },
      { toolName: 'lookUp', input: {}, dynamic: true },
    ]);
    const failed = answer.chunks.flatMap((chunk) => (chunk.type === 'tool-output-error' ? [chunk] : []));
    expect(failed.map(({ toolCallId }) => toolCallId).sort()).toEqual(made.map(({ toolCallId }) => toolCallId).sort());
    expect(failed.map(({ errorText }) => errorText).sort()).toEqual([
      'There is no tool named lookUp.',
      'There is no tool named search.',
    ]);
    expect(requests.map(rolesOf)).toEqual([
      ['system', 'user'],
      ['system', 'user', 'assistant', 'tool', 'tool'],
    ]);
    // Both calls of the model are counted, each once.
    expect(turn).toMatchObject({ status: 'completed', usage: { inputTokens: 17, outputTokens: 8 } });
    const parts = await partsOf(turn.threadId);
    expect(parts.map(({ type }) => type)).toEqual([
      ...['step-start', 'text', 'dynamic-tool', 'dynamic-tool'],
      ...['step-start', 'text'],
    ]);
    expect(textOf(parts)).toBe('Let me look.Hello from the fake provider.');
  });

  test.each(['{"q":', 'null'])('The model goes on after a call with the input %s, without a repeat', async (input) => {
    const { answer, turn, requests } = await askThrough({ toolCalls: [call('odd', 'search', input)] }, well);
    expect(requests).toHaveLength(2);
    expect(rolesOf(requests[1])).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(answer.chunks.filter(({ type }) => type === 'tool-input-error')).toHaveLength(input === 'null' ? 0 : 1);
    const told = input === 'null' ? 'There is no tool named search.' : 'not valid JSON';
    expect(JSON.stringify(requests[1]?.body.messages)).toContain(told);
    expect(turn.status).toBe('completed');
  });

  test('an attempt that fails in the middle of a call takes the call back', async () => {
    const cut: FakeScript = {
      tokens: ['One moment.'],
      toolCalls: [call('cut', 'search')],
      fail: { how: 'cut', afterDeltas: 3 },
    };
    const { answer, turn, attempts } = await askThrough(cut, well);
    const ids = answer.chunks.flatMap((chunk) =>
      chunk.type === 'text-start' ? [chunk.id] : chunk.type === 'tool-input-start' ? [chunk.toolCallId] : [],
    );
    expect(attempts[0]?.discard.toSorted()).toEqual(ids.slice(0, 2).toSorted());
    expect((await partsOf(turn.threadId)).map(({ type }) => type)).toEqual(['step-start', 'text']);
  });

  test('Endless tool calls end at the limit of steps, and the thread goes on', async () => {
    const { turn, last, requests } = await askThrough({ tokens: ['Again. '], toolCalls: [call('c', 'again')] });
    expect(requests).toHaveLength(4);
    expect(last).toMatchObject({ type: 'error', code: 'STEP_LIMIT' });
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'STEP_LIMIT' } });
    expect(await user.answerOf(turn)).toBe('Again. Again. Again. Again. ');
    const next = await user.ask({ content: 'Enough', threadId: turn.threadId, modelId: 'demo' });
    expect(next.chunks.at(-1)).toMatchObject({ type: 'finish' });
  });
});

test('Usage is counted once per turn, with cached and reasoning tokens', async () => {
  const usage = { inputTokens: 100, cachedInputTokens: 60, outputTokens: 40, reasoningTokens: 30 };
  const { answer, turn, requests } = await askThrough({ reasoning: ['Hm. '], tokens: ['Yes.'], usage });
  expect(turn).toMatchObject({ usage });
  expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish', messageMetadata: { usage } });
  expect((await user.messages(answer.threadId)).at(-1)?.metadata).toMatchObject({ usage });
  const turns = await user.get<{ data: { usage: object }[] }>(`/api/threads/${answer.threadId}/turns`);
  expect(turns.data.map((listed) => listed.usage)).toEqual([usage]);
  expect(requests).toHaveLength(1);
});
