import OpenAI, { APIError, AuthenticationError, BadRequestError, NotFoundError } from 'openai';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../builders/product.ts';
import { waitFor } from '../support/waitFor.ts';

/** OpenAI's own client for JavaScript, unmodified, against a running Atrium. */
let product: TestProduct;
let user: ChatUser;
let client: OpenAI;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
  client = clientOf(user);
});
afterAll(() => product.close());

const clientOf = ({ token }: ChatUser) => new OpenAI({ apiKey: token, baseURL: `${product.url}/v1` });
const model = 'fake-1';
const ask = (content: string) => ({ model, messages: [{ role: 'user' as const, content }] });
const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather of a place.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
};
const callOf = (place: string) => ({ id: 'call-1', name: 'get_weather', arguments: JSON.stringify({ place }) });

/** The content of a stream, put together as programs do. */
async function read(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  return {
    chunks,
    text: deltas.map(({ content }) => content ?? '').join(''),
    calls: deltas.flatMap(({ tool_calls = [] }) => tool_calls),
    finish: chunks.flatMap(({ choices }) => choices.map(({ finish_reason }) => finish_reason ?? [])).flat(),
    usage: chunks.at(-1)?.usage,
  };
}

/** The names of the tools that the model was offered with this message. */
function toolsIn(text: string): string[] {
  const tools = requestsWith(product.provider, text)[0]?.body.tools as { function: { name: string } }[] | undefined;
  return (tools ?? []).map((tool) => tool.function.name);
}

test('Models can be listed and retrieved', async () => {
  const listed: string[] = [];
  for await (const { id } of client.models.list()) listed.push(id);
  expect(listed).toEqual(['fake-1', 'demo']);
  expect(await client.models.retrieve('demo')).toMatchObject({ id: 'demo', object: 'model', owned_by: 'demo' });
  await expect(client.models.retrieve('gone')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
});

test('A whole answer has its usage, and is kept as a turn of a thread', async () => {
  const script = { usage: { inputTokens: 20, cachedInputTokens: 5, outputTokens: 7, reasoningTokens: 3 } };
  const { data, response } = await client.chat.completions.create(ask(fake(script))).withResponse();
  const [choice] = data.choices;
  expect(choice).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello from the fake provider.' } });
  expect(data).toMatchObject({
    object: 'chat.completion',
    model,
    usage: {
      prompt_tokens: 20,
      completion_tokens: 7,
      total_tokens: 27,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 3 },
    },
  });
  const turn = await user.turn(response.headers.get('x-turn-id') ?? '');
  expect(turn).toMatchObject({ threadId: response.headers.get('x-thread-id'), status: 'completed', modelId: model });
  expect(await user.answerOf(turn)).toBe(choice?.message.content);
});

test('A stream has its usage in the last chunk', async () => {
  const body = { ...ask(fake({ tokens: 30, intervalMs: 2 })), stream_options: { include_usage: true } };
  const { chunks, text, finish, usage } = await read(await client.chat.completions.create({ ...body, stream: true }));
  expect(text).toBe(Array.from({ length: 30 }, (_, index) => `w${index} `).join(''));
  expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' });
  expect(finish).toEqual(['stop']);
  expect(usage).toMatchObject({ total_tokens: expect.any(Number) });
  expect(chunks.slice(0, -1).every(({ usage: none }) => none === null)).toBe(true);
  expect(chunks.at(-1)?.choices).toEqual([]);
});

test('The finish reason says that an answer reached its limit, or that the provider filtered it', async () => {
  const reasonOf = async (finishReason: 'length' | 'content-filter') =>
    (await client.chat.completions.create(ask(fake({ finishReason })))).choices[0]?.finish_reason;
  expect(await reasonOf('length')).toBe('length');
  expect(await reasonOf('content-filter')).toBe('content_filter');
});

test('The settings of a request reach the provider', async () => {
  await client.chat.completions.create({
    ...ask('Settings, please'),
    temperature: 0.3,
    top_p: 0.9,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    seed: 7,
    stop: ['END'],
    max_completion_tokens: 50,
    response_format: { type: 'json_schema', json_schema: { name: 'reply', schema: { type: 'object' }, strict: true } },
    tools: [weather],
    tool_choice: 'required',
    parallel_tool_calls: false,
  });
  const [request] = requestsWith(product.provider, 'Settings, please');
  expect(request?.body).toMatchObject({
    temperature: 0.3,
    top_p: 0.9,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    seed: 7,
    stop: ['END'],
    max_tokens: 50,
    response_format: { type: 'json_schema', json_schema: { name: 'reply', schema: { type: 'object' } } },
    tool_choice: 'required',
    parallel_tool_calls: false,
  });
  expect(toolsIn('Settings, please')).toEqual(['get_weather']);
});

test('without a thread, the answer depends on exactly the messages that are sent', async () => {
  const { response } = await client.chat.completions
    .create({
      model,
      messages: [
        { role: 'system', content: 'Talk like a pirate.' },
        { role: 'user', content: 'My name is Ada.' },
        { role: 'assistant', content: 'Ahoy, Ada!' },
        { role: 'user', content: 'And yours,' },
        { role: 'user', content: 'if I may ask?' },
      ],
    })
    .withResponse();
  const [request] = requestsWith(product.provider, 'if I may ask?');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(JSON.stringify(request?.body.messages)).toMatch(/Talk like a pirate.*My name is Ada.*Ahoy, Ada!.*And yours,/);
  const messages = await user.messages(response.headers.get('x-thread-id') ?? '');
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  const thread = await user.get<{ title: string }>(`/api/threads/${response.headers.get('x-thread-id')}`);
  expect(thread.title).toBe('My name is Ada.');
});

test.each([
  ['metadata', { metadata: { thread_id: 'chat-of-mine' } }, {}],
  ['a header', {}, { headers: { 'x-thread-id': 'other-chat' } }],
])('A thread that %s names goes on with the new message only', async (_name, body, options) => {
  const first = await client.chat.completions.create({ ...ask('The first message'), ...body }, options).withResponse();
  const threadId = first.response.headers.get('x-thread-id');
  const again = {
    model,
    ...body,
    messages: [
      { role: 'user' as const, content: 'something else altogether' },
      { role: 'assistant' as const, content: 'that nobody said' },
      { role: 'user' as const, content: `The second of ${threadId}` },
    ],
  };
  const second = await client.chat.completions.create(again, options).withResponse();
  expect(second.response.headers.get('x-thread-id')).toBe(threadId);
  const [request] = requestsWith(product.provider, `The second of ${threadId}`);
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(JSON.stringify(request?.body.messages)).toContain('The first message');
  expect(JSON.stringify(request?.body.messages)).not.toContain('something else');
  // By the thread's own id as well.
  const third = client.chat.completions.create({ ...ask('The third'), metadata: { thread_id: threadId ?? '' } });
  expect((await third.withResponse()).response.headers.get('x-thread-id')).toBe(threadId);
});

describe('functions of the client', () => {
  test('Functions are called, and their results begin the next turn of the same thread', async () => {
    const script = { tokens: ['Let me look.'], toolCalls: [callOf('Oslo')] };
    const question = { role: 'user' as const, content: fake(script, 'Weather in Oslo?') };
    const body = { model, tools: [weather] };
    const { data, response } = await client.chat.completions.create({ ...body, messages: [question] }).withResponse();
    const [choice] = data.choices;
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: 'Let me look.',
        tool_calls: [{ type: 'function', function: { name: 'get_weather', arguments: '{"place":"Oslo"}' } }],
      },
    });
    const id = choice?.message.tool_calls?.[0]?.id ?? '';
    const result = { role: 'tool' as const, tool_call_id: id, content: 'Snow, of course.' };
    const messages = [question, choice?.message as OpenAI.ChatCompletionMessage, result];
    const next = await client.chat.completions.create({ ...body, messages }).withResponse();
    expect(next.data.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: expect.any(String) } });
    expect(next.response.headers.get('x-thread-id')).toBe(response.headers.get('x-thread-id'));
    expect(next.response.headers.get('x-turn-id')).not.toBe(response.headers.get('x-turn-id'));
    const [asked] = requestsWith(product.provider, 'Snow, of course.');
    expect(rolesOf(asked)).toEqual(['system', 'user', 'assistant', 'tool']);
    // A repeat gets the same answer, and the model is not asked again.
    const again = await client.chat.completions.create({ ...body, messages });
    expect(again.choices).toEqual(next.data.choices);
    expect(requestsWith(product.provider, 'Snow, of course.')).toHaveLength(1);
    const stored = await user.messages(next.response.headers.get('x-thread-id') ?? '');
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
    expect(stored[1]?.parts.at(-1)).toMatchObject({ state: 'output-available', output: 'Snow, of course.' });
  });

  test('The client’s own helper runs functions from a stream', async () => {
    const places: string[] = [];
    const runner = client.chat.completions.runTools({
      model,
      stream: true,
      messages: [{ role: 'user', content: fake({ toolCalls: [callOf('Rome')] }) }],
      tools: [
        {
          type: 'function',
          function: {
            ...weather.function,
            parse: JSON.parse as (input: string) => { place: string },
            function: ({ place }: { place: string }) => {
              places.push(place);
              return `Sun in ${place}`;
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('Hello from the fake provider.');
    expect(places).toEqual(['Rome']);
  });

  test('Each call needs its result, and nobody else can bring it', async () => {
    const toolCalls = [callOf('Bonn'), { ...callOf('Bern'), id: 'call-2' }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: fake({ toolCalls }) }];
    const body = { model, tools: [weather], messages };
    const [choice] = (await client.chat.completions.create(body)).choices;
    const [one, other] = choice?.message.tool_calls ?? [];
    const resultOf = (id = '') => ({ role: 'tool' as const, tool_call_id: id, content: 'Rain' });
    messages.push(choice?.message as OpenAI.ChatCompletionMessage, resultOf(one?.id));
    await expect(client.chat.completions.create(body)).rejects.toMatchObject({
      status: 400,
      code: 'TOOL_RESULT_MISSING',
      message: expect.stringContaining(other?.id ?? '-'),
    });
    messages.push(resultOf(other?.id));
    // Another user's request says nothing about this thread.
    const stranger = clientOf(await product.user());
    const alone = { ...body, messages: messages.slice(2) };
    await expect(stranger.chat.completions.create(alone)).rejects.toMatchObject({
      code: 'TOOL_RESULT_UNKNOWN',
      param: 'messages[0].tool_call_id',
    });
    expect((await client.chat.completions.create(body)).choices[0]?.finish_reason).toBe('stop');
  });

  test('A message without the results is answered at once', async () => {
    const metadata = { thread_id: 'impatient' };
    const body = { ...ask(fake({ toolCalls: [callOf('Kiel')] })), tools: [weather], metadata };
    const waiting = await client.chat.completions.create(body).withResponse();
    const next = await client.chat.completions.create({ ...ask('Never mind.'), metadata });
    expect(next.choices[0]?.finish_reason).toBe('stop');
    const turn = await user.turn(waiting.response.headers.get('x-turn-id') ?? '');
    expect(turn).toMatchObject({ status: 'completed', finishReason: 'tool-calls', pendingToolCalls: [] });
  });
});

test('Tools of the space run inside the turn if the client asks for them, and are not shown', async () => {
  const drive = { id: 'call-1', name: 'drive_list', arguments: '{}' };
  const content = fake({ tokens: ['Looking.'], toolCalls: [drive] }, 'What is there?');
  const metadata = { server_tools: 'on' };
  const { data, response } = await client.chat.completions.create({ ...ask(content), metadata }).withResponse();
  expect(data.choices[0]).toMatchObject({
    finish_reason: 'stop',
    message: { content: 'Looking.\n\nHello from the fake provider.' },
  });
  expect(data.choices[0]?.message.tool_calls).toBeUndefined();
  const timeline = await user.get<{ toolCalls: { toolName: string }[] }>(
    `/chat/turns/${response.headers.get('x-turn-id')}/timeline`,
  );
  expect(timeline.toolCalls.map(({ toolName }) => toolName)).toEqual(['drive_list']);

  expect(toolsIn('What is there?')).toContain('drive_read');
  // Clients that do not know this tool could not answer it.
  expect(toolsIn('What is there?')).not.toContain('ask_user');
  await client.chat.completions.create(ask('Without any'));
  expect(toolsIn('Without any')).toEqual([]);
  await client.chat.completions.create({ ...ask('With a mode'), metadata: { mode: 'ask' } });
  expect(toolsIn('With a mode')).toContain('drive_read');
});

describe('Errors', () => {
  const failing = async (body: object, options: object = {}) => {
    const request = client.chat.completions.create({ ...ask('x'), ...body } as never, { maxRetries: 0, ...options });
    const error = (await request.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )) as APIError;
    expect(error).toBeInstanceOf(APIError);
    return error;
  };

  test.each<[string, object, { code: string; param: string | null }]>([
    ['a model that is not there', { model: 'gone' }, { code: 'model_not_found', param: 'model' }],
    ['more than one choice', { n: 2 }, { code: 'FIELD_UNSUPPORTED', param: 'n' }],
    ['probabilities', { logprobs: true }, { code: 'FIELD_UNSUPPORTED', param: 'logprobs' }],
    ['sound', { modalities: ['text', 'audio'] }, { code: 'FIELD_UNSUPPORTED', param: 'modalities' }],
    ['no message', { messages: [] }, { code: 'INVALID_REQUEST', param: 'messages' }],
    ['a wrong type', { temperature: 'hot' }, { code: 'INVALID_REQUEST', param: 'temperature' }],
    [
      'nothing to answer',
      { messages: [{ role: 'assistant', content: 'Hi' }] },
      { code: 'CONTENT_REQUIRED', param: 'messages' },
    ],
    [
      'a picture that cannot be fetched',
      {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'ftp://example.com/a.png' } }] }],
      },
      { code: 'FILE_URL_UNSUPPORTED', param: 'messages[0].content[0].image_url.url' },
    ],
    [
      'a sound',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }] }] },
      { code: 'CONTENT_UNSUPPORTED', param: 'messages[0].content[0]' },
    ],
    [
      'two tools of one name',
      { tools: [weather, weather] },
      { code: 'TOOL_NAME_TAKEN', param: 'tools[1].function.name' },
    ],
    [
      'more than 128 tools',
      { tools: Array.from({ length: 129 }, (_, n) => ({ type: 'function', function: { name: `tool_${n}` } })) },
      { code: 'INVALID_REQUEST', param: 'tools' },
    ],
    [
      'a result that belongs to no call',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'tool', tool_call_id: 'call_x', content: 'Rain' },
        ],
      },
      { code: 'TOOL_RESULT_UNKNOWN', param: 'messages[1].tool_call_id' },
    ],
    [
      'such a result before an answer',
      {
        messages: [
          { role: 'tool', tool_call_id: 'call_x', content: 'Rain' },
          { role: 'assistant', content: 'It rains.' },
          { role: 'user', content: 'Oh' },
        ],
      },
      { code: 'TOOL_RESULT_UNKNOWN', param: 'messages[0].tool_call_id' },
    ],
    ['an effort of no model', { reasoning_effort: 'huge' }, { code: 'EFFORT_UNKNOWN', param: 'reasoning_effort' }],
    ['a choice among no tools', { tool_choice: 'required' }, { code: 'TOOL_CHOICE_INVALID', param: 'tool_choice' }],
  ])('The client gets an error for %s', async (_name, body, { code, param }) => {
    const error = await failing(body);
    expect({ code: error.code, param: error.param }).toEqual({ code, param });
    expect(error).toBeInstanceOf(
      code === 'model_not_found' ? NotFoundError : error.status === 422 ? APIError : BadRequestError,
    );
  });

  test.each([
    ['atr_wrong', 'INVALID_API_KEY', /API key is wrong.*npm run -s atrium -- key create/],
    ['sk-wrong', 'INVALID_TOKEN', /nor an API key of Atrium.*npm run -s atrium -- key create/],
  ])('AuthenticationError for the wrong key %s', async (apiKey, code, message) => {
    const stranger = new OpenAI({ apiKey, baseURL: `${product.url}/v1` });
    const refusal: unknown = await stranger.chat.completions.create(ask('x')).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AuthenticationError);
    expect(refusal).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('New fields, and fields that say nothing, are ignored', async () => {
    const body = { n: 1, logprobs: false, stop: null, modalities: ['text'], brand_new: { a: 1 }, service_tier: 'auto' };
    expect(await client.chat.completions.create({ ...ask('x'), ...body } as never)).toMatchObject({ choices: [{}] });
  });

  test('404 for another tenant’s thread and space', async () => {
    const other = await product.user();
    const { response } = await clientOf(other).chat.completions.create(ask('Mine')).withResponse();
    const metadata = { thread_id: response.headers.get('x-thread-id') ?? '' };
    expect(await failing({ metadata })).toMatchObject({ status: 404, code: 'NOT_FOUND' });
    expect(await failing({ metadata: { space_id: other.spaceId } })).toMatchObject({ status: 404, code: 'NOT_FOUND' });
  });

  test('A turn that fails is an error without a retry, or the last event of a stream', async () => {
    const content = fake({ status: 400 });
    const error = await failing({ ...ask(content) }, { maxRetries: 2 });
    expect(error).toMatchObject({ code: 'PROVIDER_REFUSED' });
    expect(error.headers?.get('x-should-retry')).toBe('false');
    const streamed = client.chat.completions.create({ ...ask(content), stream: true }).then(read);
    await expect(streamed).rejects.toMatchObject({ code: 'PROVIDER_REFUSED' });
  });
});

test('A provider that limits requests is a 429 that clients do not repeat', async () => {
  // After a Retry-After of more than a minute, Atrium does not try again either.
  const content = fake({ status: 429, headers: { 'retry-after': '120' } }, 'Too much');
  const error = (await client.chat.completions.create(ask(content)).catch((thrown: unknown) => thrown)) as APIError;
  expect(requestsWith(product.provider, 'Too much')).toHaveLength(1);
  expect(error).toMatchObject({ status: 429, code: 'PROVIDER_RATE_LIMITED', type: 'rate_limit_error' });
  expect(error.headers?.get('x-should-retry')).toBe('false');
});

describe('A model that breaks off and answers again', () => {
  const cut = { tokens: ['Half an ', 'answer'], fail: { how: 'cut' as const, afterDeltas: 2 } };

  test('A stream whose first words were sent already ends with an error', async () => {
    product.provider.enqueue(cut);
    const streamed = client.chat.completions.create({ ...ask('Broken in a stream'), stream: true }).then(read);
    const error = (await streamed.catch((thrown: unknown) => thrown)) as APIError;
    expect(error).toMatchObject({ code: 'ANSWER_BEGUN_AGAIN' });
  });

  test('A whole answer does not show the break', async () => {
    product.provider.enqueue(cut);
    const { choices } = await client.chat.completions.create(ask('Broken, and whole'));
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello from the fake provider.' } });
  });
});

test('A missing operation is an error in OpenAI’s form', async () => {
  await expect(client.completions.create({ model, prompt: 'x' })).rejects.toMatchObject({
    status: 404,
    code: 'NOT_FOUND',
    message: expect.stringContaining('/v1/chat/completions, /v1/embeddings, /v1/files and /v1/models'),
  });
  await expect(client.responses.create({ model, input: 'x' })).rejects.toBeInstanceOf(NotFoundError);
  const root = await user.fetch('/v1');
  expect([root.status, await root.json()]).toEqual([
    404,
    { error: expect.objectContaining({ code: 'NOT_FOUND', message: expect.stringContaining('/v1/models') }) },
  ]);
  const outside = client.withOptions({ baseURL: product.url });
  const refused = { status: 404, code: 'NOT_FOUND', message: expect.stringContaining('Append /v1 to the base URL') };
  await expect(outside.models.list()).rejects.toMatchObject(refused);
  await expect(
    outside.chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] }),
  ).rejects.toMatchObject(refused);
});

test('A key needs the scope "chat", and its turns do no more than its scopes allow', async () => {
  const keyOf = async (scope: 'chat' | 'web') =>
    (await product.identity.keys.create(user.id, { name: scope, scopes: [scope] })).key;
  const withScope = clientOf({ ...user, token: await keyOf('chat') });
  const metadata = { server_tools: 'on' };
  const tool = { model: 'demo', metadata, messages: [{ role: 'user' as const, content: '/tool drive_list {}' }] };
  const [choice] = (await withScope.chat.completions.create(tool)).choices;
  expect(choice?.message.content).toContain('lacks the scope "drive:read"');
  const without = clientOf({ ...user, token: await keyOf('web') });
  const refusal = { status: 403, code: 'INSUFFICIENT_SCOPE', type: 'permission_error' };
  await expect(without.chat.completions.create(ask('x'))).rejects.toMatchObject(refusal);
  await expect(without.models.list()).rejects.toMatchObject(refusal);
});

test('The same Idempotency-Key gets the same answer, without another turn', async () => {
  const headers = { 'Idempotency-Key': 'once' };
  const first = await client.chat.completions.create(ask('Only once, please'), { headers });
  expect(await client.chat.completions.create(ask('Only once, please'), { headers })).toEqual(first);
  expect(requestsWith(product.provider, 'Only once, please')).toHaveLength(1);
  await expect(client.chat.completions.create(ask('Another'), { headers })).rejects.toMatchObject({
    ...{ status: 422, param: 'Idempotency-Key', message: expect.stringContaining('with this Idempotency-Key') },
  });
  // When the log has gone, the answer comes from the stored message.
  const { pool } = product.environment.database;
  const turnId = first.id.replace('chatcmpl-', '');
  await pool.query('UPDATE turns SET log_purged_at = NOW() WHERE id = ?', [turnId]);
  await pool.query('DELETE FROM turn_segments WHERE turn_id = ?', [turnId]);
  expect(await client.chat.completions.create(ask('Only once, please'), { headers })).toEqual(first);
});

test.each<[string, OpenAI.RequestOptions]>([
  ['a header', { headers: { 'x-on-disconnect': 'continue' } }],
  ['its idempotency key', { headers: { 'Idempotency-Key': 'comes-back' } }],
])('A client that leaves, and says by %s that it comes back, does not stop the turn', async (_name, options) => {
  const body = ask(fake({ tokens: 40, intervalMs: 20 }));
  const stream = await client.chat.completions.create({ ...body, stream: true }, options);
  for await (const { id } of stream) {
    const turnId = id.replace('chatcmpl-', '');
    stream.controller.abort();
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  }
});

test('The answer comes after a turn that waits for a person', async () => {
  const dangerous = { id: 'call-1', name: 'drive_delete', arguments: '{"path":"/none.txt"}' };
  const metadata = { mode: 'work' };
  const answering = client.chat.completions
    .create({ ...ask(fake({ toolCalls: [dangerous] }, 'Delete it')), metadata })
    .withResponse();
  const turnId = await waitFor('the turn to wait', async () => {
    const page = await user.get<{ data: { id: string; needsInput: boolean; activeTurnId: string }[] }>(
      `/api/spaces/${user.spaceId}/threads?needsInput=true`,
    );
    return page.data[0]?.activeTurnId;
  });
  const [call] = (await user.turn(turnId)).pendingToolCalls;
  await user.fetch(`/chat/turns/${turnId}/approvals/${call?.toolCallId}`, {
    method: 'POST',
    body: { approved: false },
  });
  expect((await answering).data.choices[0]).toMatchObject({ finish_reason: 'stop' });
});
