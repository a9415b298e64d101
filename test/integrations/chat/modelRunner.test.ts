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
  test('streams text, and reports the usage and the finish reason', async () => {
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
  ] as const)('ends with the finish reason %s', async (finishReason, expected) => {
    fake.enqueue({ tokens: 3, finishReason });
    expect((await answer(runnerFor(fake.url), { modelId })).result.finishReason).toBe(expected);
  });

  test('waits for a slow reader, and loses nothing', async () => {
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

  test('does not count as stalled while its reader is busy', async () => {
    fake.enqueue({ tokens: 3, intervalMs: 5 });
    const call = { modelId, prompt: [user('hello')], abortSignal: new AbortController().signal };
    const run = runnerFor(fake.url, { idleTimeoutMs: 60 }).run(call, () => sleep(150));
    expect((await run).finishReason).toBe('stop');
  });

  test.each(['at once', 'later'])("ends with the reader's error if the reader fails %s, and hangs up", async (when) => {
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

test('usage is estimated for an OpenAI-compatible server that reports none', async () => {
  fake.enqueue({ tokens: ['12345678'], usage: null });
  const { result } = await answer(runnerFor(fake.url), { modelId: 'local', prompt: [user('12345678')] });
  expect(result.usage).toEqual({ inputTokens: 2, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 });
});

test('a tool call without arguments has an empty object as its input', async () => {
  fake.enqueue({ toolCalls: [{ id: 'one', name: 'add', arguments: '' }] });
  const { parts } = await answer(runnerFor(fake.url), { modelId: 'local', tools: [addTool] });
  expect(parts.at(-1)).toMatchObject({ type: 'tool-call', input: '{}' });
});

test('arguments that are invalid JSON are passed on unchanged', async () => {
  fake.enqueue({ toolCalls: [{ id: 'one', name: 'add', arguments: '{"a":' }] });
  const { parts } = await answer(runnerFor(fake.url), { modelId: 'local', tools: [addTool] });
  expect(parts.at(-1)).toMatchObject({ type: 'tool-call', input: '{"a":' });
});

test('an unknown model is refused before any request', async () => {
  await expect(answer(runnerFor(fake.url), { modelId: 'nothing' })).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
  expect(fake.requests).toHaveLength(0);
});

test('a call after the server closed its idle connection opens a new one', async () => {
  const runner = runnerFor(fake.url);
  for (let round = 0; round < 3; round++) {
    await answer(runner, { modelId: 'local' });
    await fake.dropIdleConnections();
  }
  expect(fake.requests).toHaveLength(3);
});
