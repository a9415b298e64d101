import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/**
 * The limit of seven days, made short. A call that waits for its client or for approval times out even if no worker
 * runs at that moment.
 */
const maxWaitSeconds = 3;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_MAX_WAIT_SECONDS: String(maxWaitSeconds),
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  user = await product.user();
  const writing = toolLines([['drive_write', { path: '/a.txt', content: 'x' }]]);
  await user.ask({ content: writing, modelId: 'demo', mode: 'work' });
});
afterAll(() => product.close());

const deletion = toolLines([['drive_delete', { path: '/a.txt' }]]);
const paint = { name: 'paint', inputSchema: { type: 'object' } };
const outputsOf = async (turnId: string) =>
  toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);

/** A turn that waits, and the time at which its call expires. */
async function waiting(content: string) {
  const before = Date.now();
  const { turnId, chunks } = await user.ask({ content, modelId: 'demo', mode: 'work', clientTools: [paint] });
  const { status, pendingToolCalls } = await user.turn(turnId);
  expect(status).toBe('waiting');
  const approval = chunks.find((chunk) => chunk.type === 'data-approval');
  const expiresAt = approval ? Date.parse(approval.data.expiresAt) : before + maxWaitSeconds * 1_000 + 500;
  return { turnId, toolCallId: pendingToolCalls[0]?.toolCallId ?? '', expiresAt };
}

async function decide(turnId: string, toolCallId: string) {
  const path = `/chat/turns/${turnId}/approvals/${toolCallId}`;
  const response = await user.fetch(path, { method: 'POST', body: { approved: true } });
  return [response.status, ((await response.json()) as { code?: string }).code];
}

test('Without an answer in time the model is told, the turn ends, and a late approval gets 409', async () => {
  const contents = [toolLines([['ask_user', { question: '?' }]]), toolLines([['paint', {}]]), deletion];
  const turns = await Promise.all(contents.map(waiting));
  const { turnId = '', toolCallId = '' } = turns[2] ?? {};
  // The call has timed out, and no worker has noticed yet.
  await product.environment.database.pool.query('UPDATE tool_calls SET deadline_at = ? WHERE id = ?', [
    new Date(),
    toolCallId,
  ]);
  expect(await decide(turnId, toolCallId)).toEqual([409, 'APPROVAL_EXPIRED']);
  expect(await user.turn(turnId)).toMatchObject({ status: 'waiting' });
  for (const turn of turns) {
    expect(await user.ended(turn.turnId)).toMatchObject({ status: 'completed', pendingToolCalls: [] });
  }
  expect(await decide(turnId, toolCallId)).toEqual([409, 'APPROVAL_EXPIRED']);
  expect(await Promise.all(turns.map((turn) => outputsOf(turn.turnId)))).toEqual([
    ['error: The client did not answer in time.'],
    ['error: The client did not answer in time.'],
    ['error: The user did not allow this call in time.'],
  ]);
});

test('A call that times out while no worker runs ends when a worker is back', async () => {
  const turns = await Promise.all([toolLines([['ask_user', { question: '?' }]]), deletion].map(waiting));
  await product.process.kill('SIGKILL');
  await waitFor('the time to be over', () => turns.every(({ expiresAt }) => Date.now() > expiresAt));
  await product.restart();
  for (const turn of turns) expect(await user.ended(turn.turnId)).toMatchObject({ status: 'completed' });
  expect(await Promise.all(turns.map((turn) => outputsOf(turn.turnId)))).toEqual([
    ['error: The client did not answer in time.'],
    ['error: The user did not allow this call in time.'],
  ]);
  const listed = await user.ask({ content: toolLines([['drive_list', {}]]), modelId: 'demo' });
  expect(toolOutputs(listed.chunks)).toMatchObject([{ entries: [{ name: 'a.txt' }] }]);
});
