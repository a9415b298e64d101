import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { type FakeMcpServer, startMcpServer } from '../../fakes/mcpServer.ts';
import { collect } from '../../support/sseClient.ts';

// A form secret goes only into tools that are marked to take secrets, and only after the person has approved.

const typed = 'hunter2-0123456789';
let mcp: FakeMcpServer;
let product: TestProduct;
let user: ChatUser;
let reference: { $secret: string };

beforeAll(async () => {
  mcp = await startMcpServer('tracker-token-0123456789');
  product = await buildProduct({ ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${mcp.port}` });
  user = await product.user();
  const servers = `/api/spaces/${user.spaceId}/mcp-servers`;
  const endpoint = { url: mcp.url, headers: { authorization: 'Bearer tracker-token-0123456789' }, approval: 'never' };
  for (const fields of [{ name: 'plain' }, { name: 'trusted', takesSecrets: true }]) {
    const added = await user.fetch(servers, { method: 'POST', body: { ...endpoint, ...fields } });
    expect(await added.json()).toMatchObject({ status: 'ok', takesSecrets: fields.takesSecrets ?? false });
  }
  const form = { name: 'signIn', field: 'password', value: typed, spaceId: user.spaceId };
  const stored = await user.fetch('/api/dynamic-ui/secrets', { method: 'POST', body: form });
  reference = { $secret: ((await stored.json()) as { secretId: string }).secretId };
});
afterAll(async () => {
  await product.close();
  await mcp.stop();
});

const timesUsed = async () => {
  const log = await user.get<{ data: { action: string }[] }>(`/api/spaces/${user.spaceId}/audit`);
  return log.data.filter(({ action }) => action === 'form-secret.used').length;
};

test('A tool that takes no secrets fails, and the secret is not read', async () => {
  const lines = toolLines([
    ['drive_write', { path: '/password.txt', text: reference }],
    ['drive_read', { path: reference }],
    ['drive_delete', { path: reference }],
    ['web_fetch', { url: reference }],
    ['mcp_plain_log_in', { word: reference }],
    ['mcp_plain_close_all', { deep: [{ word: reference }] }],
  ]);
  const { chunks } = await user.ask({ content: lines, modelId: 'demo', mode: 'work' });
  const outputs = toolOutputs(chunks);
  expect(outputs).toHaveLength(6);
  for (const output of outputs) expect(output).toMatch(/^error: \w+ accepts no secrets, so the secret was not read/);
  expect(chunks.filter((chunk) => chunk.type === 'data-approval')).toEqual([]);
  expect([await timesUsed(), await mcp.runsOf('log_in')]).toEqual([0, 0]);
  const list = await user.get<{ data: unknown[] }>(`/api/spaces/${user.spaceId}/audit`);
  expect(JSON.stringify(list)).not.toContain(typed);
});

test.each([true, false])('A tool that takes secrets runs only if the person approves: %s', async (approved) => {
  const before = await mcp.runsOf('log_in');
  const lines = toolLines([['mcp_trusted_log_in', { word: reference }]]);
  const { turnId, chunks } = await user.ask({ content: lines, modelId: 'demo', mode: 'work' });
  expect(chunks.find((chunk) => chunk.type === 'data-approval')).toBeDefined();
  expect([JSON.stringify(chunks).includes(typed), await mcp.runsOf('log_in')]).toEqual([false, before]);
  const { pendingToolCalls } = await user.turn(turnId);
  const decide = `/chat/turns/${turnId}/approvals/${pendingToolCalls[0]?.toolCallId}`;
  await user.fetch(decide, { method: 'POST', body: { approved } });
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const after = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  if (approved) expect(toolOutputs(after.chunks)).toEqual(['18 characters: [redacted]']);
  expect([await mcp.runsOf('log_in'), await timesUsed()]).toEqual([before + (approved ? 1 : 0), 1]);
});

test('Without a secret in its input the tool follows the approval setting of its server', async () => {
  const lines = toolLines([['mcp_trusted_log_in', { word: 'plain' }]]);
  const { chunks } = await user.ask({ content: lines, modelId: 'demo', mode: 'work' });
  expect(toolOutputs(chunks)).toEqual(['5 characters: plain']);
});
