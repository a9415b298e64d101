import type { Scope } from '../../../models/identity/scopes.ts';
import { asUser, type ChatUser } from '../../builders/chat.ts';
import { putFile } from '../../builders/files.ts';
import { buildProduct, requestsWith, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { type FakeMcpServer, startMcpServer } from '../../fakes/mcpServer.ts';
import { collect } from '../../support/sseClient.ts';

/** A turn never does more than its key allows, neither by itself nor when others continue it. */
let mcp: FakeMcpServer;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  mcp = await startMcpServer('tracker-token-0123456789');
  product = await buildProduct({ ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${mcp.port}` });
  user = await product.user();
  const headers = { authorization: 'Bearer tracker-token-0123456789' };
  const server = { name: 'trusted', url: mcp.url, headers, approval: 'never', takesSecrets: true };
  const added = await user.fetch(`/api/spaces/${user.spaceId}/mcp-servers`, { method: 'POST', body: server });
  expect(await added.json()).toMatchObject({ status: 'ok' });
  await putFile(product, user, '/plans/secret.md', 'The code word is Bellflower.');
});
afterAll(async () => {
  await product.close();
  await mcp.stop();
});

const work = { modelId: 'demo', mode: 'work' };

/** The same user, by a key with these scopes. */
async function byKey(...scopes: Scope[]): Promise<ChatUser & { keyId: string }> {
  const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes } });
  const { id, key } = (await made.json()) as { id: string; key: string };
  return Object.assign(asUser(product, { ...user, token: key }), { keyId: id });
}

type Call = readonly [name: string, input: unknown];
/** Calls of each kind of tool, by the scope that they need. */
const calls: Record<string, Call[]> = {
  'drive:read': [
    ['drive_read', { path: '/plans/secret.md' }],
    ['drive_list', {}],
    ['drive_list', { container: 'thread' }],
    ['drive_search', { query: 'code' }],
  ],
  'drive:write': [
    ['drive_write', { path: '/bot.txt', content: 'x' }],
    ['drive_edit', { path: '/plans/secret.md', oldText: 'Bellflower', newText: 'Bellflower' }],
    ['drive_move', { path: '/bot.txt', to: '/bot2.txt' }],
  ],
  web: [['web_fetch', { url: 'http://127.0.0.1:1/' }]],
  mcp: [['mcp_trusted_log_in', { word: 'plain' }]],
};
const all = Object.values(calls).flat();

const lacks = (scope: string, output: unknown) => String(output).includes(`lacks the scope "${scope}"`);

/** The scopes that a turn of this caller lacks for those calls. */
async function refusedOf(caller: ChatUser): Promise<string[]> {
  const outputs = toolOutputs((await caller.ask({ content: toolLines(all), ...work })).chunks);
  expect(outputs).toHaveLength(all.length);
  const scopes = Object.entries(calls).flatMap(([scope, { length }]) => Array.from({ length }, () => scope));
  return [...new Set(scopes.filter((scope, index) => lacks(scope, outputs[index])))];
}

test.each<[Scope[], string[]]>([
  [['chat'], ['drive:read', 'drive:write', 'web', 'mcp']],
  [
    ['chat', 'drive:read', 'web'],
    ['drive:write', 'mcp'],
  ],
  [
    ['chat', 'drive:write'],
    ['web', 'mcp'],
  ],
  [
    ['chat', 'mcp'],
    ['drive:read', 'drive:write', 'web'],
  ],
  [['*'], []],
])('A key with %j is refused the calls that need %j', async (scopes, refused) => {
  expect(await refusedOf(await byKey(...scopes))).toEqual(refused);
});

test('A model is offered the tools that the key covers, and all tools for a person', async () => {
  const offeredTo = async (caller: ChatUser, content: string) => {
    await caller.ask({ content, mode: 'work', deviceComputerId: 'dev_1', openTabs: [] });
    const [request] = requestsWith(product.provider, content);
    return ((request?.body.tools ?? []) as { function: { name: string } }[]).map(({ function: { name } }) => name);
  };
  // The scope "chat" covers conversations, now and in automations.
  const chatting = ['ask_user', 'automation_create', 'automation_delete', 'automation_list'];
  const chatter = await offeredTo(await byKey('chat'), 'Offered to a chatting key');
  expect(chatter.toSorted()).toEqual(chatting);
  const reader = await offeredTo(await byKey('chat', 'drive:read'), 'Offered to a reading key');
  expect(reader.toSorted()).toEqual([...chatting, 'drive_list', 'drive_read', 'drive_search']);
  const person = await offeredTo(user, 'Offered to a person');
  expect(person).toEqual(expect.arrayContaining(['drive_delete', 'web_fetch', 'mcp_trusted_log_in', 'device_exec']));
});

describe('files of a message', () => {
  const attached = { content: 'Read it', files: [{ path: '/plans/secret.md' }] };
  const asPart = {
    messages: [{ role: 'user', parts: [{ type: 'data-file', data: { path: '/plans/secret.md' } }] }],
  };

  test.each([
    ['named in `files`', attached],
    ['in a part', asPart],
  ])('Files %s need drive:read', async (_name, body) => {
    const chatting = await byKey('chat');
    const refused = await chatting.fetch('/chat/stream', { method: 'POST', body });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'INSUFFICIENT_SCOPE', detail: expect.stringContaining('drive:read') }),
    ]);
    const reading = await byKey('chat', 'drive:read');
    expect((await reading.ask(body)).chunks.at(-1)).toMatchObject({ type: 'finish' });
  });

  test('A turn without drive:read is not shown earlier attachments, also when it regenerates their answer', async () => {
    const { threadId } = await user.ask({ content: 'Attached by a person', files: [{ path: '/plans/secret.md' }] });
    const chatting = await byKey('chat');
    const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Attached by a person' }] }];
    await chatting.ask({ content: 'Repeat the file', threadId });
    await chatting.ask({ id: threadId, messages, trigger: 'regenerate-message' });
    const told = product.provider.requests.filter(({ body }) => JSON.stringify(body).includes('Attached by a person'));
    const [first, ...later] = told;
    expect(JSON.stringify(first?.body)).toContain('Bellflower');
    expect(later).toHaveLength(2);
    for (const { body } of later) {
      expect(JSON.stringify(body)).toContain('/plans/secret.md');
      expect(JSON.stringify(body)).not.toContain('Bellflower');
    }
  });
});

describe('approvals', () => {
  const decide = (as: ChatUser, turnId: string, id: string | undefined, approved = true) =>
    as.fetch(`/chat/turns/${turnId}/approvals/${id}`, { method: 'POST', body: { approved } });

  async function deleting(as: ChatUser, path: string) {
    await putFile(product, user, path, 'x');
    const { turnId, chunks } = await as.ask({ content: toolLines([['drive_delete', { path }]]), ...work });
    return { turnId, chunks, id: (await user.turn(turnId)).pendingToolCalls[0]?.toolCallId };
  }

  test('A key needs the scope "approvals", and the scope of the call that it approves', async () => {
    const { turnId, id } = await deleting(user, '/decided.txt');
    for (const scopes of [
      ['chat', 'drive:write'],
      ['chat', 'approvals'],
      ['chat', 'approvals', 'drive:read'],
    ] as const) {
      const refused = await decide(await byKey(...scopes), turnId, id);
      expect([refused.status, await refused.json()]).toEqual([
        403,
        expect.objectContaining({ code: 'INSUFFICIENT_SCOPE' }),
      ]);
    }
    expect((await user.turn(turnId)).pendingToolCalls).toHaveLength(1);
    expect((await decide(await byKey('approvals', 'drive:write'), turnId, id)).status).toBe(200);
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  });

  test('A key with the scope "approvals" can deny every call', async () => {
    const { turnId, id } = await deleting(user, '/denied.txt');
    expect((await decide(await byKey('approvals'), turnId, id, false)).status).toBe(200);
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  });

  test('No approval is requested for a call that the turn may not make', async () => {
    const { chunks, id } = await deleting(await byKey('chat', 'drive:read'), '/unasked.txt');
    expect([chunks.filter(({ type }) => type === 'data-approval'), id]).toEqual([[], undefined]);
    expect(lacks('drive:write', toolOutputs(chunks)[0])).toBe(true);
  });
});

test('a form’s secret goes into a tool only with secrets:read', async () => {
  const form = { name: 'signIn', field: 'password', value: 'hunter2-0123456789', spaceId: user.spaceId };
  const stored = await user.fetch('/api/dynamic-ui/secrets', { method: 'POST', body: form });
  const word = { $secret: ((await stored.json()) as { secretId: string }).secretId };
  const before = await mcp.runsOf('log_in');
  const content = toolLines([['mcp_trusted_log_in', { word }]]);
  const refused = await (await byKey('chat', 'mcp', 'secrets')).ask({ content, ...work });
  expect(lacks('secrets:read', toolOutputs(refused.chunks)[0])).toBe(true);
  expect(await mcp.runsOf('log_in')).toBe(before);

  const { turnId } = await (await byKey('chat', 'mcp', 'secrets:read')).ask({ content, ...work });
  const { pendingToolCalls } = await user.turn(turnId);
  const path = `/chat/turns/${turnId}/approvals/${pendingToolCalls[0]?.toolCallId}`;
  const approve = { method: 'POST', body: { approved: true } };
  expect((await (await byKey('approvals', 'mcp')).fetch(path, approve)).status).toBe(403);
  expect((await (await byKey('approvals', 'mcp', 'secrets:read')).fetch(path, approve)).status).toBe(200);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await mcp.runsOf('log_in')).toBe(before + 1);
});

describe('Turns that others continue', () => {
  const asking = (then: Call) => toolLines([['ask_user', { question: 'Which?' }], then]);
  const writing: Call = ['drive_write', { path: '/further.txt', content: 'x' }];

  async function waiting(as: ChatUser) {
    const { turnId } = await as.ask({ content: asking(writing), ...work });
    const { pendingToolCalls } = await user.turn(turnId);
    return { turnId, body: { toolResults: [{ toolUseId: pendingToolCalls[0]?.toolCallId, content: 'this' }] } };
  }

  const outputsOf = async (turnId: string) => {
    await user.ended(turnId);
    return toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);
  };

  test('A key’s turn keeps the scopes of the key when a person answers it', async () => {
    const { turnId, body } = await waiting(await byKey('chat'));
    expect((await user.ask(body)).turnId).toBe(turnId);
    expect(lacks('drive:write', (await outputsOf(turnId))[1])).toBe(true);
  });

  test('A caller with fewer scopes than a turn cannot answer it', async () => {
    const { turnId, body } = await waiting(user);
    const narrow = await byKey('chat', 'drive:read');
    const refused = await narrow.fetch('/chat/stream', { method: 'POST', body });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'INSUFFICIENT_SCOPE' }),
    ]);
    await (await byKey('*')).ask(body);
    expect((await outputsOf(turnId))[1]).toMatchObject({ path: '/further.txt' });
  });

  test('A key can answer a turn that has no more scopes than the key', async () => {
    const { turnId, body } = await waiting(await byKey('chat', 'drive:read'));
    await (await byKey('chat', 'drive:write')).ask(body);
    expect(lacks('drive:write', (await outputsOf(turnId))[1])).toBe(true);
  });

  test('A queued message keeps the scopes of its sender', async () => {
    const { turnId, body } = await waiting(user);
    const { threadId } = await user.turn(turnId);
    const queued = await (await byKey('chat')).send({ content: toolLines([writing]), ...work, threadId });
    const behind = await user.send({ content: toolLines([writing]), ...work, threadId });
    await user.ask(body);
    expect(lacks('drive:write', toolOutputs((await collect(queued)).chunks)[0])).toBe(true);
    expect(toolOutputs((await collect(behind)).chunks)).toMatchObject([{ path: '/further.txt' }]);
  });

  test('A message that is repeated by another credential attaches to its turn, which keeps its scopes', async () => {
    const message = { content: toolLines([writing]), ...work, outboxItemId: 'from the bot' };
    const first = await (await byKey('chat')).ask(message);
    const again = await user.ask(message);
    expect(again.turnId).toBe(first.turnId);
    expect(lacks('drive:write', toolOutputs(again.chunks)[0])).toBe(true);
    expect(await user.turn(first.turnId)).toMatchObject({ scopes: ['chat'] });
  });

  test('A turn whose key is revoked meanwhile uses no more tools', async () => {
    const key = await byKey('chat', 'drive:write');
    const { turnId, body } = await waiting(key);
    expect((await user.fetch(`/api/keys/${key.keyId}`, { method: 'DELETE' })).status).toBe(204);
    await user.ask(body);
    expect(String((await outputsOf(turnId))[1])).toContain('the API key that started this turn is no longer valid');
  });
});

test('A key with only the scope "chat" can neither change chat settings nor share threads', async () => {
  const chatting = await byKey('chat');
  const { threadId } = await chatting.ask({ content: 'Hello' });
  const settings = (by: ChatUser) =>
    by.fetch(`/api/spaces/${user.spaceId}/chat-settings`, { method: 'PUT', body: { systemPrompt: 'Be brief.' } });
  const share = (by: ChatUser) => by.fetch(`/api/threads/${threadId}/shares`, { method: 'POST', body: {} });
  for (const refused of [await settings(chatting), await share(chatting)]) {
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ code: 'INSUFFICIENT_SCOPE' });
  }
  expect((await chatting.fetch(`/api/spaces/${user.spaceId}/chat-settings`)).status).toBe(200);
  expect((await settings(await byKey('settings:write'))).status).toBe(200);
  expect((await share(await byKey('sharing:write'))).status).toBe(201);
  await user.fetch(`/api/spaces/${user.spaceId}/chat-settings`, { method: 'PUT', body: {} });
});

test('A key cannot add an MCP server that needs no approval, or that gets secrets, beyond its own scopes', async () => {
  const add = async (body: object, ...scopes: Scope[]) => {
    const server = { name: 'other', url: 'https://mcp.example.com', ...body };
    const added = await (await byKey(...scopes)).fetch(`/api/spaces/${user.spaceId}/mcp-servers`, {
      method: 'POST',
      body: server,
    });
    return ((await added.json()) as { code?: string }).code;
  };
  expect(await add({ approval: 'never' }, 'tools')).toBe('INSUFFICIENT_SCOPE');
  expect(await add({ takesSecrets: true }, 'tools', 'approvals')).toBe('INSUFFICIENT_SCOPE');
  expect(await add({ approval: 'never', takesSecrets: true }, 'tools', 'approvals', 'secrets:read')).toBeUndefined();
});
