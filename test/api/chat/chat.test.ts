import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { onePixelPng, putFile } from '../../builders/files.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Problem {
  status: number;
  code: string;
  errors?: { pointer: string; detail: string }[];
}

async function problemOf(response: Response): Promise<Problem> {
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  return (await response.json()) as Problem;
}

describe('models', () => {
  test.each(['/chat/models', '/api/chat/models'])('GET %s lists the models that can be used now', async (path) => {
    const { models, defaultModelId } = await user.get<{ models: { id: string }[]; defaultModelId: string }>(path);
    expect(defaultModelId).toBe('fake-1');
    expect(models.map(({ id }) => id)).toEqual(['fake-1', 'demo']);
    expect(models[0]).toMatchObject({ id: 'fake-1', name: expect.any(String), provider: 'compatible' });
    expect(models[1]).toMatchObject({ provider: 'demo', pricingRates: expect.any(Array) });
  });

  test.each(['/chat/models', '/api/chat/models'])('401 for GET %s without a token', async (path) => {
    const response = await fetch(product.url + path);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
  });
});

describe('POST /chat/stream', () => {
  test('A message is answered with the stream of its turn, and the turn and its messages are kept', async () => {
    const stream = await user.send({ content: 'Good morning', userMessageId: 'um-1' });
    expect(stream.response.status).toBe(200);
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-vercel-ai-ui-message-stream': 'v1',
    });
    const { turnId, threadId } = idsOf(stream);
    const lines: string[] = [];
    for await (const { id, data } of stream.events)
      lines.push(`${id ?? ''} ${data.replace(/^\{"type":"([^"]*)".*/, '$1')}`);
    expect(lines).toEqual([
      '1 start',
      '2 data-turn',
      '3 start-step',
      '4 text-start',
      ...lines.filter((line) => line.endsWith(' text-delta')),
      expect.stringMatching(/^\d+ text-end$/),
      expect.stringMatching(/^\d+ finish-step$/),
      expect.stringMatching(/^\d+ data-turn$/),
      expect.stringMatching(/^\d+ finish$/),
      ' [DONE]',
    ]);
    // Numbered from 1 without a gap.
    expect(lines.slice(0, -1).map((line) => Number.parseInt(line, 10))).toEqual(
      lines.slice(0, -1).map((_, at) => at + 1),
    );
    expect(stream.raw().toString()).toMatch(/^retry: \d+\n\nid: 1\ndata: \{/);

    const turn = await user.turn(turnId);
    expect(turn).toMatchObject({
      id: turnId,
      threadId,
      spaceId: user.spaceId,
      status: 'completed',
      mode: 'ask',
      modelId: 'fake-1',
      userMessageId: 'um-1',
      finishReason: 'stop',
      error: null,
      usage: { inputTokens: 10, outputTokens: 3, cachedInputTokens: 0, reasoningTokens: 0 },
      lastSeq: lines.length - 1,
    });
    expect(await user.messages(threadId)).toMatchObject([
      { id: 'um-1', role: 'user', turnId, parts: [{ type: 'text', text: 'Good morning' }] },
      {
        id: turn.assistantMessageId,
        role: 'assistant',
        turnId,
        parts: [{ type: 'step-start' }, { type: 'text', text: 'Hello from the fake provider.', state: 'done' }],
        metadata: { status: 'completed', finishReason: 'stop', usage: turn.usage },
      },
    ]);
  });

  test('The model gets the thread so far', async () => {
    const first = await user.ask({ content: 'My name is Ada' });
    const second = await user.ask({ content: 'What is my name?', threadId: first.threadId });
    expect(second.threadId).toBe(first.threadId);
    expect(second.turnId).not.toBe(first.turnId);
    const [request] = requestsWith(product.provider, 'What is my name?');
    expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  });

  test('A message may have every field of the specification at once', async () => {
    await putFile(product, user, '/a/b.png', onePixelPng);
    const answer = await user.ask({
      content: 'All of it',
      mode: 'work',
      spaceId: user.spaceId,
      autoModel: false,
      modelId: 'fake-1',
      effort: null,
      files: [{ path: 'a/b.png', fileType: 'image', mimeType: 'image/png', fileName: 'b.png', width: 3, height: 4 }],
      notification: { priority: 'high', later: true },
      outboxItemId: 'all-of-it',
      userMessageId: 'all-of-it-message',
      deviceComputerId: 'cmp_1',
      openTabs: [
        { paneId: 'p', isActive: true, tabs: [{ tabId: 't', type: 'app', title: 'T', isActive: true }], x: 1 },
      ],
      agentContextSnapshot: {
        capturedAt: 1,
        timezone: 'Europe/Berlin',
        ipLocation: { country: 'DE', source: 'edge' },
        windowSessionId: null,
        senderComputerId: null,
        spaceId: null,
        activePaneId: 'p',
        panes: [{ paneId: 'p', isActive: true, kind: 'app' }],
        later: 'x',
      },
    });
    expect(await user.turn(answer.turnId)).toMatchObject({ mode: 'work', status: 'completed' });
    const [message] = await user.messages(answer.threadId);
    expect(message?.parts).toMatchObject([
      { type: 'text', text: 'All of it' },
      { data: { path: '/a/b.png', width: 3, mimeType: 'image/png' } },
    ]);
  });

  test('The AI SDK’s own body is accepted, and its chat id finds the thread again', async () => {
    const message = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
    const first = await user.ask({ id: 'chat-of-mine', messages: [message('m1', 'One')], trigger: 'submit-message' });
    const again = { id: 'chat-of-mine', messages: [message('m1', 'One'), message('m2', 'Two')] };
    const second = await user.ask(again);
    expect(second.threadId).toBe(first.threadId);
    expect((await user.messages(first.threadId)).map(({ id, role }) => (role === 'user' ? id : role))).toEqual([
      'm1',
      'assistant',
      'm2',
      'assistant',
    ]);
    // The same chat id of another user is another thread.
    const other = await product.user();
    expect((await other.ask(again)).threadId).not.toBe(first.threadId);
  });

  test('The demo model answers without a provider', async () => {
    const before = product.provider.requests.length;
    const answer = await user.ask({ content: '/think Hm\n/say Hello there', modelId: 'demo' });
    expect(answer.text).toContain('Hello there');
    expect(answer.chunks.some(({ type }) => type === 'reasoning-delta')).toBe(true);
    expect(await user.turn(answer.turnId)).toMatchObject({
      status: 'completed',
      modelId: 'demo',
      finishReason: 'stop',
    });
    expect(product.provider.requests).toHaveLength(before);
  });

  test('The finish reason names the limit that ended an answer', async () => {
    const answer = await user.ask({ content: fake({ finishReason: 'length' }) });
    expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'length' });
    expect(await user.turn(answer.turnId)).toMatchObject({ status: 'completed', finishReason: 'length' });
  });

  test('Text in any script arrives unchanged, also when it is cut between two deltas', async () => {
    const tokens = ['Grüße', ' 👩‍👩‍👧 ', '漢字\n\n', 'data: x\n\nid: 9\n', '\u2028"\\'];
    const answer = await user.ask({ content: fake({ tokens, intervalMs: 5 }) });
    expect(answer.text).toBe(tokens.join(''));
    expect(await user.answerOf(await user.turn(answer.turnId))).toBe(tokens.join(''));
  });
});

describe('Refusals before the first byte of the stream', () => {
  const pane = { paneId: 'p', isActive: true, tabs: [] };
  test.each<[string, Record<string, unknown>, string]>([
    ['content', { content: '' }, '/content'],
    ['content', { content: 7 }, '/content'],
    ['mode', { content: 'x', mode: 'play' }, '/mode'],
    ['threadId', { content: 'x', threadId: 7 }, '/threadId'],
    ['spaceId', { content: 'x', spaceId: null }, '/spaceId'],
    ['autoModel', { content: 'x', autoModel: 'yes' }, '/autoModel'],
    ['modelId', { content: 'x', modelId: 7 }, '/modelId'],
    ['effort', { content: 'x', effort: 7 }, '/effort'],
    ['files', { content: 'x', files: {} }, '/files'],
    ['files: path', { content: 'x', files: [{ fileName: 'a' }] }, '/files/0/path'],
    ['files: fileType', { content: 'x', files: [{ path: 'a', fileType: 'film' }] }, '/files/0/fileType'],
    ['files: width', { content: 'x', files: [{ path: 'a', width: '1' }] }, '/files/0/width'],
    ['notification', { content: 'x', notification: { priority: 'loud' } }, '/notification/priority'],
    ['toolResults', { toolResults: [] }, '/toolResults'],
    ['toolResults: content', { toolResults: [{ toolUseId: 'a' }] }, '/toolResults/0/content'],
    ['toolResults: isError', { toolResults: [{ toolUseId: 'a', content: '', isError: 1 }] }, '/toolResults/0/isError'],
    ['outboxItemId', { content: 'x', outboxItemId: '' }, '/outboxItemId'],
    ['userMessageId', { content: 'x', userMessageId: 'x'.repeat(201) }, '/userMessageId'],
    ['deviceComputerId', { content: 'x', deviceComputerId: 7 }, '/deviceComputerId'],
    ['openTabs', { content: 'x', openTabs: [{ ...pane, tabs: undefined }] }, '/openTabs/0/tabs'],
    ['openTabs: tab', { content: 'x', openTabs: [{ ...pane, tabs: [{ tabId: 't' }] }] }, '/openTabs/0/tabs/0/type'],
    ['snapshot', { content: 'x', agentContextSnapshot: { capturedAt: 'now' } }, '/agentContextSnapshot/capturedAt'],
    [
      'snapshot: ipLocation',
      { content: 'x', agentContextSnapshot: { ipLocation: { source: 'guess' } } },
      '/agentContextSnapshot/ipLocation',
    ],
    ['onBusy', { content: 'x', onBusy: 'panic' }, '/onBusy'],
    ['id', { id: '', messages: [{ role: 'user' }] }, '/id'],
    ['messages', { id: 'c', messages: [] }, '/messages'],
    ['messages: role', { id: 'c', messages: [{ role: 'king' }] }, '/messages/0/role'],
    ['trigger', { content: 'x', trigger: 'whim' }, '/trigger'],
  ])('400 for a wrong %s', async (_name, body, pointer) => {
    const response = await user.fetch('/chat/stream', { method: 'POST', body });
    const problem = await problemOf(response);
    expect(problem).toMatchObject({ status: 400, code: 'INVALID_REQUEST' });
    expect(problem.errors?.map((error) => error.pointer)).toEqual(
      expect.arrayContaining([expect.stringContaining(pointer)]),
    );
  });

  test.each<[string, number, string, Record<string, unknown>]>([
    ['nothing to say', 400, 'CONTENT_REQUIRED', {}],
    ['results that nobody waits for', 422, 'TOOL_RESULT_UNKNOWN', { toolResults: [{ toolUseId: 'a', content: '' }] }],
    ['messages without the user’s', 422, 'NO_USER_MESSAGE', { messages: [{ role: 'assistant', parts: [] }] }],
    ['an empty message', 422, 'EMPTY_MESSAGE', { messages: [{ role: 'user', parts: [] }] }],
    ['an unknown model', 422, 'MODEL_UNKNOWN', { content: 'x', modelId: 'gpt-0' }],
    ['an unknown effort', 422, 'EFFORT_UNKNOWN', { content: 'x', modelId: 'demo', effort: 'heroic' }],
    ['an unknown thread', 404, 'NOT_FOUND', { content: 'x', threadId: 'thr_none' }],
    ['an unknown space', 404, 'NOT_FOUND', { content: 'x', spaceId: 'spc_none' }],
  ])('%s: %i %s', async (_name, status, code, body) => {
    const response = await user.fetch('/chat/stream', { method: 'POST', body });
    expect(await problemOf(response)).toMatchObject({ status, code });
  });

  test('Bodies that are not JSON, of another type, or too large are refused', async () => {
    const send = (body: string, type: string) =>
      fetch(`${product.url}/chat/stream`, {
        method: 'POST',
        headers: { authorization: `Bearer ${user.token}`, 'content-type': type },
        body,
      });
    expect(await problemOf(await send('{"content":', 'application/json'))).toMatchObject({ code: 'INVALID_JSON' });
    expect(await problemOf(await send('content=x', 'text/plain'))).toMatchObject({ status: 415 });
    const large = JSON.stringify({ content: 'x'.repeat(1024 * 1024) });
    expect(await problemOf(await send(large, 'application/json'))).toMatchObject({
      status: 413,
      code: 'BODY_TOO_LARGE',
    });
  });

  test('401 without a credential, or with a wrong one', async () => {
    for (const headers of [{}, { authorization: 'Bearer nonsense' }, { authorization: `Bearer ${user.token}x` }]) {
      const response = await fetch(`${product.url}/chat/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers } as Record<string, string>,
        body: JSON.stringify({ content: 'x' }),
      });
      expect(await problemOf(response)).toMatchObject({ status: 401, code: expect.any(String) });
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm="atrium"/);
    }
  });

  test('403 for another user’s thread, in any space', async () => {
    const { threadId } = await user.ask({ content: 'Mine' });
    const stranger = await product.user();
    const colleague = await product.user();
    await product.identity.members.add(user.spaceId, colleague.email, 'editor');
    for (const other of [stranger, colleague]) {
      const sent = await other.fetch('/chat/stream', { method: 'POST', body: { content: 'x', threadId } });
      expect(await problemOf(sent)).toMatchObject({ status: 403, code: 'NOT_THREAD_OWNER' });
      const asChat = { id: threadId, messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }] };
      expect((await other.fetch('/chat/stream', { method: 'POST', body: asChat })).status).toBe(403);
      expect((await other.fetch(`/chat/stream/${threadId}/stream`)).status).toBe(403);
    }
  });

  test('A turn belongs to its owner: 404 for a stranger, and 403 for a colleague', async () => {
    const { turnId } = await user.ask({ content: 'Mine too' });
    const stranger = await product.user();
    const colleague = await product.user();
    await product.identity.members.add(user.spaceId, colleague.email, 'owner');
    for (const [other, status] of [
      [stranger, 404],
      [colleague, 403],
    ] as const) {
      expect((await other.fetch(`/chat/turns/${turnId}`)).status).toBe(status);
      expect((await other.fetch(`/chat/turns/${turnId}/stream`)).status).toBe(status);
      expect((await other.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' })).status).toBe(status);
    }
  });

  test('A viewer may ask, and gets 403 in work mode', async () => {
    const viewer = await product.user();
    await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
    const asked = await viewer.ask({ content: 'May I?', spaceId: user.spaceId });
    expect(await viewer.turn(asked.turnId)).toMatchObject({ status: 'completed', spaceId: user.spaceId });
    const work = { content: 'May I?', spaceId: user.spaceId, mode: 'work' };
    const response = await viewer.fetch('/chat/stream', { method: 'POST', body: work });
    expect(await problemOf(response)).toMatchObject({ status: 403, code: 'ROLE_TOO_LOW' });
    expect(
      (await viewer.fetch('/chat/stream', { method: 'POST', body: { ...work, threadId: asked.threadId } })).status,
    ).toBe(403);
  });

  test('422 for a thread that is not in the named space', async () => {
    const { threadId } = await user.ask({ content: 'Here' });
    const second = await product.identity.spaces.create(user.id, 'Second');
    const body = { content: 'x', threadId, spaceId: second.space.id };
    const response = await user.fetch('/chat/stream', { method: 'POST', body });
    expect(await problemOf(response)).toMatchObject({ status: 422, code: 'SPACE_MISMATCH' });
  });

  test('No refused message has reached the provider', () => {
    expect(requestsWith(product.provider, '"x"')).toEqual([]);
  });
});
