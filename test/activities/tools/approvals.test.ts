import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { asUser, type ChatUser, type TurnBody } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';

const full = inFull('tools');

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  user = await product.user();
});
afterAll(() => product.close());

const work = { modelId: 'demo', mode: 'work' };

async function write(...paths: string[]): Promise<void> {
  const calls = paths.map((path) => ['drive_write', { path, content: 'x' }] as const);
  await user.ask({ content: toolLines(calls), ...work });
}

async function namesIn(path: string): Promise<string[]> {
  const { chunks } = await user.ask({ content: toolLines([['drive_list', { path }]]), ...work });
  return (toolOutputs(chunks) as [{ entries: { name: string }[] }])[0].entries.map(({ name }) => name);
}

/** A turn that asks to delete these paths in one step. */
async function deleting(...paths: string[]) {
  const content = paths.map((path) => `/tool drive_delete ${JSON.stringify({ path })}`).join('\n');
  const answer = await user.ask({ content, ...work });
  const asked = answer.chunks.flatMap((chunk) => (chunk.type === 'data-approval' ? [chunk.data] : []));
  expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' });
  return { ...answer, asked, ids: asked.map(({ toolCallId }) => toolCallId) };
}

const decide = (as: ChatUser, turnId: string, id = '', approved: unknown = true) =>
  as.fetch(`/chat/turns/${turnId}/approvals/${id}`, { method: 'POST', body: { approved } });

const whole = async (turnId: string): Promise<UiChunk[]> =>
  (await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks;

test('A call approved on another device runs once, and the turn goes on', async () => {
  await write('/allowed/a.txt', '/allowed/b.txt');
  const { turnId, asked, ids } = await deleting('/allowed/a.txt');
  expect(asked).toMatchObject([{ turnId, toolName: 'drive_delete', state: 'asked', expiresAt: expect.any(String) }]);
  expect(await user.turn(turnId)).toMatchObject({
    status: 'waiting',
    pendingToolCalls: [{ toolCallId: ids[0], waitsFor: 'approval', input: { path: '/allowed/a.txt' } }],
  });
  expect(await namesIn('/allowed')).toEqual(['a.txt', 'b.txt']);
  const phone = asUser(product, { ...user, token: await product.identity.sessions.create(user.id) });
  const answers = await Promise.all([decide(phone, turnId, ids[0]), decide(user, turnId, ids[0])]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(((await answers[0]?.json()) as TurnBody | undefined)?.pendingToolCalls).toEqual([]);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await namesIn('/allowed')).toEqual(['b.txt']);
  const chunks = await whole(turnId);
  expect(toolOutputs(chunks)).toMatchObject([{ path: '/allowed/a.txt', inTrash: true }]);
  const states = chunks.flatMap((chunk) => (chunk.type === 'data-approval' ? [chunk.data.state] : []));
  expect(states).toEqual(['asked', 'approved']);
});

test('A denied call does nothing, and the model is told', async () => {
  await write('/denied/a.txt');
  const { turnId, ids } = await deleting('/denied/a.txt');
  expect((await decide(user, turnId, ids[0], false)).status).toBe(200);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(toolOutputs(await whole(turnId))).toEqual(['error: The user did not allow this call.']);
  expect(await namesIn('/denied')).toEqual(['a.txt']);
  const again = await decide(user, turnId, ids[0], true);
  expect([again.status, ((await again.json()) as { code: string }).code]).toEqual([409, 'APPROVAL_DECIDED']);
});

full.test(
  'When one of two calls is approved it runs, and the turn waits for the other, also after a restart',
  async () => {
    await write('/two/a.txt', '/two/b.txt', '/two/c.txt');
    const { turnId, ids } = await deleting('/two/a.txt', '/two/b.txt');
    await decide(user, turnId, ids[1]);
    const first = await collect(await user.open(`/chat/turns/${turnId}/stream`));
    expect(first.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' });
    expect(await namesIn('/two')).toEqual(['a.txt', 'c.txt']);
    expect(await user.turn(turnId)).toMatchObject({ status: 'waiting', pendingToolCalls: [{ toolCallId: ids[0] }] });
    await product.process.kill('SIGKILL');
    await product.restart();
    await decide(user, turnId, ids[0]);
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
    expect(await namesIn('/two')).toEqual(['c.txt']);
  },
);

test('Another file at the approved path is not deleted, and the model is told', async () => {
  await write('/exchanged/a.txt');
  const { turnId, ids } = await deleting('/exchanged/a.txt');
  const move = ['drive_move', { path: '/exchanged/a.txt', to: '/exchanged/old.txt' }] as const;
  await user.ask({ content: toolLines([move]), ...work });
  await write('/exchanged/a.txt');
  expect((await decide(user, turnId, ids[0])).status).toBe(200);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(toolOutputs(await whole(turnId))).toEqual([expect.stringMatching(/^error: TOOL_CHANGED: /)]);
  expect(await namesIn('/exchanged')).toEqual(['a.txt', 'old.txt']);
});

test('A file created after the approval was asked for is not deleted', async () => {
  const { turnId, ids } = await deleting('/later/a.txt');
  await write('/later/a.txt');
  await decide(user, turnId, ids[0]);
  await user.ended(turnId);
  expect(toolOutputs(await whole(turnId))).toEqual([expect.stringMatching(/^error: TOOL_CHANGED: /)]);
  expect(await namesIn('/later')).toEqual(['a.txt']);
});

test('404 for a stranger, 403 for a colleague, and 409 after the turn has ended', async () => {
  await write('/mine/a.txt');
  const { turnId, ids } = await deleting('/mine/a.txt');
  const stranger = await product.user();
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  expect((await decide(stranger, turnId, ids[0])).status).toBe(404);
  expect((await decide(colleague, turnId, ids[0])).status).toBe(403);
  expect((await decide(user, turnId, 'tcl_none')).status).toBe(404);
  expect((await decide(user, turnId, ids[0], 'yes')).status).toBe(400);
  // The tool is no client tool, so a client cannot send its result.
  const made = await user.fetch('/chat/stream', {
    method: 'POST',
    body: { toolResults: [{ toolUseId: ids[0], content: 'done' }] },
  });
  expect(made.status).toBe(422);
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  await user.ended(turnId);
  const late = await decide(user, turnId, ids[0]);
  expect([late.status, ((await late.json()) as { code: string }).code]).toEqual([409, 'APPROVAL_CLOSED']);
  expect(await namesIn('/mine')).toEqual(['a.txt']);
});
