import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { withCacheMarks } from '../../../integrations/chat/callOptions.ts';
import { createCatalogue } from '../../../integrations/chat/catalogue.ts';
import { createModelRunner } from '../../../integrations/chat/modelRunner.ts';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import { addTool, answer, fakeSettings, llmConfig, runnerFor, user } from './support.ts';

let fake: FakeProvider;
beforeAll(async () => {
  fake = await startFakeProvider();
});
beforeEach(() => fake.reset());
afterAll(() => fake.stop());

async function bodyOf(modelId: string, call: object = {}) {
  await answer(runnerFor(fake.url), { modelId, ...call });
  const request = await fake.request(0);
  return { body: request.body, headers: request.headers, path: request.path };
}

test('a request to OpenAI uses the Responses API, has the effort, and turns storage off', async () => {
  const { body, headers, path } = await bodyOf('gpt-5.1', { effort: 'high', maxOutputTokens: 500, tools: [addTool] });
  expect(path).toBe('/v1/responses');
  expect(headers.authorization).toBe('Bearer openai-key');
  expect(body).toMatchObject({ model: 'gpt-5.1', store: false, max_output_tokens: 500, reasoning: { effort: 'high' } });
  expect(body.include).toContain('reasoning.encrypted_content');
});

test('a request to an OpenAI-compatible server uses chat completions and asks for usage', async () => {
  const { body, headers, path } = await bodyOf('local', { tools: [addTool] });
  expect(path).toBe('/v1/chat/completions');
  expect(headers.authorization).toBeUndefined();
  expect(body).toMatchObject({ model: 'local', stream: true, stream_options: { include_usage: true } });
  expect(body).not.toHaveProperty('max_tokens');
});

test('a request to an OpenAI-compatible server has the provider options of the models file', async () => {
  const llm = llmConfig(fakeSettings(fake.url));
  const catalogue = createCatalogue(llm);
  const providerOptions = { top_k: 40, chat_template_kwargs: { thinking: false }, user: 'us' };
  const resolve: typeof catalogue.resolve = (request) => {
    const choice = catalogue.resolve(request);
    return { ...choice, model: { ...choice.model, providerOptions } };
  };
  const runner = createModelRunner({ config: { llm }, catalogue: { ...catalogue, resolve } });
  await answer(runner, { modelId: 'local', tools: [addTool], settings: { parallelToolCalls: false } });
  const { body } = await fake.request(0);
  expect(body).toMatchObject(providerOptions);
  expect(body.parallel_tool_calls).toBe(false);
});

test('a request to Anthropic has thinking by effort, and caching marks', async () => {
  const prompt: LanguageModelV4Prompt = [{ role: 'system', content: 'You are brief.' }, user('hello')];
  const { body, headers, path } = await bodyOf('claude-sonnet-4-5', { effort: 'medium', prompt });
  const mark = { cache_control: { type: 'ephemeral' } };
  expect(path).toBe('/v1/messages');
  expect(headers['x-api-key']).toBe('anthropic-key');
  expect(body).toMatchObject({
    thinking: { type: 'enabled' },
    system: [mark],
    messages: [{ role: 'user', content: [mark] }],
  });
});

test('the effort "none" turns thinking off', async () => {
  const { body } = await bodyOf('claude-sonnet-4-5', { effort: 'none' });
  expect(body.thinking).toEqual({ type: 'disabled' });
});

test('an effort that the model does not have becomes its default, since the model may be a fallback', async () => {
  const { body } = await bodyOf('gpt-5.1', { effort: 'extreme' });
  expect(body.reasoning).toMatchObject({ effort: 'low' });
});

test("a limit of tokens above the model's own is lowered to it", async () => {
  const { body } = await bodyOf('claude-haiku-4-5', { effort: 'none', maxOutputTokens: 1_000_000 });
  expect(body.max_tokens).toBe(64_000);
});

test.each(['gpt-5.1', 'claude-sonnet-4-5'])('%s gets its earlier reasoning back unchanged', async (modelId) => {
  const runner = runnerFor(fake.url);
  fake.enqueue({ reasoning: ['hm'], toolCalls: [{ id: 'one', name: 'add', arguments: '{"a":1}' }] });
  const { parts } = await answer(runner, { modelId, tools: [addTool] });
  const end = parts.find((part) => part.type === 'reasoning-end');
  const call = parts.find((part) => part.type === 'tool-call');
  const prompt: LanguageModelV4Prompt = [
    user('hello'),
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm', providerOptions: end?.type === 'reasoning-end' ? end.providerMetadata : {} },
        {
          type: 'tool-call',
          toolCallId: 'one',
          toolName: 'add',
          input: { a: 1 },
          providerOptions: call?.type === 'tool-call' ? call.providerMetadata : {},
        },
      ],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'one', toolName: 'add', output: { type: 'text', value: '1' } }],
    },
  ];
  await answer(runner, { modelId, prompt, tools: [addTool] });
  expect(JSON.stringify(fake.requests[1]?.body)).toMatch(modelId === 'gpt-5.1' ? /fake-encrypted/ : /fake-signature/);
});

test('caching marks are on the system prompt and on the last two messages of the user', () => {
  const said: LanguageModelV4Prompt[number] = { role: 'assistant', content: [{ type: 'text', text: 'x' }] };
  const prompt: LanguageModelV4Prompt = [{ role: 'system', content: 's' }, user('1'), said, user('2'), said, user('3')];
  expect(withCacheMarks(prompt).map(({ providerOptions }) => providerOptions !== undefined)).toEqual([
    true,
    false,
    false,
    true,
    false,
    true,
  ]);
  expect(prompt.every(({ providerOptions }) => providerOptions === undefined)).toBe(true);
});

describe('an image in the result of a tool', () => {
  const picture = Buffer.from('a picture').toString('base64');
  const resultOf = (modelId: string) =>
    bodyOf(modelId, {
      tools: [addTool],
      prompt: [
        user('hello'),
        {
          role: 'assistant',
          content: [{ type: 'tool-call', toolCallId: 'one', toolName: 'add', input: { a: 1 } }],
        },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: 'one',
              toolName: 'add',
              output: {
                type: 'content',
                value: [
                  { type: 'text', text: 'the text of it' },
                  { type: 'file', mediaType: 'image/png', data: { type: 'data', data: picture } },
                ],
              },
            },
          ],
        },
      ] satisfies LanguageModelV4Prompt,
    });

  test("is in the call's result for OpenAI", async () => {
    const { body } = await resultOf('gpt-5.1');
    expect((body.input as unknown[]).at(-1)).toMatchObject({
      type: 'function_call_output',
      call_id: 'one',
      output: [
        { type: 'input_text', text: 'the text of it' },
        { type: 'input_image', image_url: `data:image/png;base64,${picture}` },
      ],
    });
  });

  test("is in the call's result for Anthropic", async () => {
    const { body } = await resultOf('claude-sonnet-4-5');
    expect((body.messages as unknown[]).at(-1)).toMatchObject({
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'one',
          content: [
            { type: 'text', text: 'the text of it' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } },
          ],
        },
      ],
    });
  });

  test('follows in a user message for a server whose results are only text', async () => {
    const { body } = await resultOf('local');
    const [result, behind] = (body.messages as unknown[]).slice(-2);
    expect(result).toMatchObject({ role: 'tool', tool_call_id: 'one', content: 'the text of it' });
    expect(behind).toMatchObject({
      role: 'user',
      content: [
        { type: 'text', text: '[The picture in the result of add, call one]' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } },
      ],
    });
  });
});
