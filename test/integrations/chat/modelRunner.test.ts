import { setTimeout as sleep } from 'node:timers/promises';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import { addTool, answer, joined, providers, runnerFor, textOf, user } from './support.ts';

let fake: FakeProvider;
beforeAll(async () => {
  fake = await startFakeProvider();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

describe.each(providers)('a model call to %s', (_provider, modelId) => {
  test('streams text, and reports the usage and why it ended', async () => {
    fake.enqueue({
      tokens: ['Grüße', ' "an" ', '\n\\ 🙂', ' alle'],
      usage: { inputTokens: 120, cachedInputTokens: 100, outputTokens: 7 },
    });
    const { parts, result } = await answer(runnerFor(fake.url), { modelId });
    expect(joined(parts).map(({ type }) => type)).toEqual(['text-start', 'text-delta', 'text-end']);
    expect(textOf(parts)).toBe('Grüße "an" \n\\ 🙂 alle');
    expect(result).toMatchObject({ finishReason: 'stop', modelId });
    expect(result.usage).toEqual({ inputTokens: 120, cachedInputTokens: 100, outputTokens: 7, reasoningTokens: 0 });
    expect(result.durationMs).toBeGreaterThanOrEqual(result.ttftMs);
  });

  test('streams reasoning, text and parallel tool calls with split arguments', async () => {
    fake.enqueue({
      reasoning: ['let me ', 'think'],
      tokens: ['I add.'],
      toolCalls: [
        { id: 'one', name: 'add', arguments: '{"a":1}', pieces: 4 },
        { id: 'two', name: 'add', arguments: '{"a":2}' },
      ],
    });
    const { parts, result } = await answer(runnerFor(fake.url), { modelId, tools: [addTool] });
    expect(result.finishReason).toBe('tool-calls');
    expect(joined(parts)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'reasoning-delta', delta: 'let me think' }),
        expect.objectContaining({ type: 'text-delta', delta: 'I add.' }),
        expect.objectContaining({ type: 'tool-input-delta', id: 'one', delta: '{"a":1}' }),
        expect.objectContaining({ type: 'tool-call', toolCallId: 'one', toolName: 'add', input: '{"a":1}' }),
        expect.objectContaining({ type: 'tool-call', toolCallId: 'two', toolName: 'add', input: '{"a":2}' }),
      ]),
    );
    const starts = parts.filter(({ type }) => type === 'text-start' || type === 'reasoning-start');
    expect(starts.map((part) => 'id' in part && part.id)).toEqual(['reasoning-0', 'text-1']);
  });

  test.each([
    ['length', 'length'],
    ['content-filter', 'content-filter'],
  ] as const)('ends with %s', async (finishReason, expected) => {
    fake.enqueue({ tokens: 3, finishReason });
    expect((await answer(runnerFor(fake.url), { modelId })).result.finishReason).toBe(expected);
  });

  test('waits for a reader that is busy, and loses nothing', async () => {
    fake.enqueue({ tokens: 400, tokensPerWrite: 10 });
    let text = '';
    let reading = 0;
    const call = { modelId, prompt: [user('hello')], abortSignal: new AbortController().signal };
    await runnerFor(fake.url).run(call, async (part) => {
      expect(++reading).toBe(1);
      await sleep(1);
      reading -= 1;
      if (part.type === 'text-delta') text += part.delta;
    });
    expect(text).toBe(Array.from({ length: 400 }, (_, index) => `w${index} `).join(''));
  });

  test('is not called stalled while its reader is busy', async () => {
    fake.enqueue({ tokens: 3, intervalMs: 5 });
    const call = { modelId, prompt: [user('hello')], abortSignal: new AbortController().signal };
    const run = runnerFor(fake.url, { idleTimeoutMs: 60 }).run(call, () => sleep(150));
    expect((await run).finishReason).toBe('stop');
  });

  test.each(['at once', 'later'])('ends with the reader’s own error when it fails %s, and hangs up', async (when) => {
    fake.enqueue({ tokens: 10_000, intervalMs: 5 });
    const fenced = new Error('fenced');
    let left = 5;
    const call = { modelId, prompt: [user('hello')], abortSignal: new AbortController().signal };
    const run = runnerFor(fake.url).run(call, (part) => {
      if (part.type !== 'text-delta' || left-- > 0) return;
      if (when === 'at once') throw fenced;
      return sleep(1).then(() => Promise.reject(fenced));
    });
    await expect(run).rejects.toBe(fenced);
    const request = await fake.closed(await fake.request(0));
    expect(request.closedByClient).toBe(true);
  });
});

test('an OpenAI-compatible server that counts nothing is counted by rule of thumb', async () => {
  fake.enqueue({ tokens: ['12345678'], usage: null });
  const { result } = await answer(runnerFor(fake.url), { modelId: 'local', prompt: [user('12345678')] });
  expect(result.usage).toEqual({ inputTokens: 2, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 });
});

test('a tool call without arguments has an empty object as its input', async () => {
  fake.enqueue({ toolCalls: [{ id: 'one', name: 'add', arguments: '' }] });
  const { parts } = await answer(runnerFor(fake.url), { modelId: 'local', tools: [addTool] });
  expect(parts.at(-1)).toMatchObject({ type: 'tool-call', input: '{}' });
});

test('arguments that are no JSON are passed on as they are', async () => {
  fake.enqueue({ toolCalls: [{ id: 'one', name: 'add', arguments: '{"a":' }] });
  const { parts } = await answer(runnerFor(fake.url), { modelId: 'local', tools: [addTool] });
  expect(parts.at(-1)).toMatchObject({ type: 'tool-call', input: '{"a":' });
});

test('an unknown model is refused before anything is sent', async () => {
  await expect(answer(runnerFor(fake.url), { modelId: 'nothing' })).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
  expect(fake.requests).toHaveLength(0);
});

test('a connection that the server closed between two calls is made anew', async () => {
  const runner = runnerFor(fake.url);
  for (let round = 0; round < 3; round++) {
    await answer(runner, { modelId: 'local' });
    await fake.dropIdleConnections();
  }
  expect(fake.requests).toHaveLength(3);
});
