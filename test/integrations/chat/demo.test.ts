import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { createCatalogue } from '../../../integrations/chat/catalogue.ts';
import { createModelRunner } from '../../../integrations/chat/modelRunner.ts';
import { answer, joined, llmConfig, textOf, user } from './support.ts';

const llm = { ...llmConfig(), idleTimeoutMs: 200 };
const newRunner = () => createModelRunner({ config: { llm }, catalogue: createCatalogue(llm) });
const runner = newRunner();
const say = (...lines: string[]) => answer(runner, { modelId: 'demo', prompt: [user(lines.join('\n'))] });

test('the demo model answers plain text by quoting it and introducing itself', async () => {
  const { parts, result } = await say('Where is the "station"?');
  expect(textOf(parts)).toContain('Where is the "station"?');
  expect(textOf(parts)).toContain('demo');
  expect(result.finishReason).toBe('stop');
});

test('commands run in the order of their lines', async () => {
  const { parts, result } = await say('hello', '/say one two', '/think hm hm', '/say three', '/tokens 3');
  expect(joined(parts).map((part) => ('delta' in part ? part.delta : part.type))).toEqual([
    'text-start',
    'one two',
    'text-end',
    'reasoning-start',
    'hm hm',
    'reasoning-end',
    'text-start',
    'three\nw1 w2 w3',
    'text-end',
  ]);
  expect(result.usage).toMatchObject({ outputTokens: 8, reasoningTokens: 2 });
});

test('the same prompt gives the same answer and costs the same', async () => {
  const [first, second] = [await say('/tokens 20', '/tool add {}'), await say('/tokens 20', '/tool add {}')];
  expect(first.parts).toEqual(second.parts);
  expect(first.result.usage).toEqual(second.result.usage);
});

test('/tokens sends the tokens at the given interval', async () => {
  const { result, parts } = await say('/tokens 20 10');
  expect(textOf(parts)).toMatch(/^w1 w2 .* w20$/);
  expect(result.usage.outputTokens).toBe(20);
  // A timer is never early, but may be late on a busy machine.
  expect(result.durationMs).toBeGreaterThan(180);
});

test('the answer ends at the limit of tokens', async () => {
  const { result, parts } = await answer(runner, { modelId: 'demo', prompt: [user('/tokens 50')], maxOutputTokens: 5 });
  expect(result.finishReason).toBe('length');
  expect(textOf(parts)).toBe('w1 w2 w3 w4 w5');
});

test("/recall repeats the user's messages", async () => {
  const said: LanguageModelV4Prompt = [user('one'), { role: 'assistant', content: [{ type: 'text', text: 'x' }] }];
  const { parts } = await answer(runner, { modelId: 'demo', prompt: [...said, user('/recall')] });
  expect(textOf(parts)).toBe('1. one\n2. /recall');
});

test('an unknown command is quoted in the answer', async () => {
  expect(textOf((await say('/dance')).parts)).toContain('/dance');
  expect(textOf((await say('/fail 418')).parts)).toContain('/fail 418');
});

test('commands after a tool call run once its result is there, and results are quoted', async () => {
  const lines = '/say first\n/tool add {"a":1}\n/tool add {"a":2}\n/say between\n/tool add {"a":3}\n/say last';
  const prompt: LanguageModelV4Prompt = [user(lines)];
  const texts: string[] = [];
  const inputs: string[][] = [];
  for (let step = 0; step < 3; step++) {
    const { parts, result } = await answer(runner, { modelId: 'demo', prompt: [...prompt] });
    texts.push(textOf(parts));
    const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part] : []));
    inputs.push(calls.map(({ input }) => input));
    expect(result.finishReason).toBe(step < 2 ? 'tool-calls' : 'stop');
    expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(calls.length);
    prompt.push(
      {
        role: 'assistant',
        content: calls.map(({ toolCallId, toolName, input }) => ({
          type: 'tool-call',
          toolCallId,
          toolName,
          input: JSON.parse(input) as unknown,
        })),
      },
      {
        role: 'tool',
        content: calls.map(({ toolCallId, toolName, input }) => ({
          type: 'tool-result',
          toolCallId,
          toolName,
          output: { type: 'json', value: { got: input } },
        })),
      },
    );
  }
  expect(inputs).toEqual([['{"a":1}', '{"a":2}'], ['{"a":3}'], []]);
  expect(texts[0]).toBe('first');
  expect(texts[1]).toBe('add: {"got":"{\\"a\\":1}"}\nadd: {"got":"{\\"a\\":2}"}\nbetween');
  expect(texts[2]).toBe('add: {"got":"{\\"a\\":3}"}\nlast');
});

test.each([
  ['429', 'PROVIDER_RATE_LIMITED'],
  ['500', 'PROVIDER_FAILED'],
  ['529', 'PROVIDER_OVERLOADED'],
  ['cut', 'PROVIDER_CUT'],
  ['stall', 'PROVIDER_STALLED'],
  ['badjson', 'PROVIDER_BAD_RESPONSE'],
  ['end', 'PROVIDER_CUT'],
  ['empty', 'PROVIDER_EMPTY_ANSWER'],
])('/fail %s fails as a provider does', async (failure, code) => {
  await expect(say(`/fail ${failure}`)).rejects.toMatchObject({ code });
});

test('/fail after a text fails after that text', async () => {
  const texts: string[] = [];
  const call = { modelId: 'demo', prompt: [user('/say one\n/fail cut')], abortSignal: new AbortController().signal };
  const run = runner.run(call, (part) => void (part.type === 'text-delta' && texts.push(part.delta)));
  await expect(run).rejects.toMatchObject({ code: 'PROVIDER_CUT' });
  expect(texts).toEqual(['one']);
});

test('/fail CODE TIMES fails that often, then succeeds once, and begins again', async () => {
  for (let round = 0; round < 2; round++) {
    await expect(say('/fail 429 2 3', '/say ok')).rejects.toMatchObject({ retryAfterMs: 3000 });
    await expect(say('/fail 429 2 3', '/say ok')).rejects.toMatchObject({ retryAfterMs: 3000 });
    expect(textOf((await say('/fail 429 2 3', '/say ok')).parts)).toBe('ok');
  }
});

// Without an abort, the first would take hours, and the last would never end.
test.each(['/tokens 1000 60000', '/tokens 100000', '/fail stall'])('%s stops at once', async (line) => {
  const stop = new AbortController();
  let tokensAfterStop = 0;
  const run = runner.run({ modelId: 'demo', prompt: [user(line)], abortSignal: stop.signal }, ({ type }) => {
    if (stop.signal.aborted && type === 'text-delta') tokensAfterStop++;
  });
  setTimeout(() => stop.abort('stopped'), 30);
  await expect(run).rejects.toBe('stopped');
  expect(tokensAfterStop).toBe(0);
});
