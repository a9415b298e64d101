import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { toolLines, toolOutputs } from '../builders/tools.ts';
import { startProduct } from '../support/product.ts';
import { collect } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';

/** Seven days, made short: what waits for its client or for leave goes on when its time is over, whoever was away at that moment. */
const maxWaitSeconds = 4;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_MAX_WAIT_SECONDS: String(maxWaitSeconds),
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  user = await product.user();
});
afterAll(() => product.close());

const paint = { name: 'paint', inputSchema: { type: 'object' } };
const outputsOf = async (turnId: string) =>
  toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);

/** A turn that waits until the moment that it gives. */
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

test('nobody answers in time: the model is told, the turn ends, and a late answer is told too', async () => {
  await user.ask({
    content: toolLines([['drive_write', { path: '/a.txt', content: 'x' }]]),
    modelId: 'demo',
    mode: 'work',
  });
  const deletion = toolLines([['drive_delete', { path: '/a.txt' }]]);
  const [asked, painted, approved] = await Promise.all(
    [toolLines([['ask_user', { question: '?' }]]), toolLines([['paint', {}]]), deletion].map(waiting),
  );
  for (const turn of [asked, painted, approved]) {
    expect(await user.ended(turn?.turnId ?? '')).toMatchObject({ status: 'completed', pendingToolCalls: [] });
  }
  expect(await outputsOf(asked?.turnId ?? '')).toEqual(['error: The client did not answer in time.']);
  expect(await outputsOf(painted?.turnId ?? '')).toEqual(['error: The client did not answer in time.']);
  expect(await outputsOf(approved?.turnId ?? '')).toEqual(['error: Nobody allowed this in time.']);
  expect(await decide(approved?.turnId ?? '', approved?.toolCallId ?? '')).toEqual([409, 'APPROVAL_EXPIRED']);
});

test('the time is over while no worker is there: leave is refused from then on, and the turn ends with the next worker', async () => {
  const [approved, asked] = await Promise.all(
    [toolLines([['drive_delete', { path: '/a.txt' }]]), toolLines([['ask_user', { question: '?' }]])].map(waiting),
  );
  await product.process.kill('SIGKILL');
  product.process = await startProduct(product.environment, 'api');
  await waitFor('the time to be over', () => Date.now() > Math.max(approved?.expiresAt ?? 0, asked?.expiresAt ?? 0));
  expect(await user.turn(approved?.turnId ?? '')).toMatchObject({ status: 'waiting' });
  expect(await decide(approved?.turnId ?? '', approved?.toolCallId ?? '')).toEqual([409, 'APPROVAL_EXPIRED']);
  await product.process.stop();
  await product.restart();
  for (const turn of [approved, asked]) {
    expect(await user.ended(turn?.turnId ?? '')).toMatchObject({ status: 'completed' });
  }
  expect(await outputsOf(approved?.turnId ?? '')).toEqual(['error: Nobody allowed this in time.']);
  expect(await outputsOf(asked?.turnId ?? '')).toEqual(['error: The client did not answer in time.']);
  expect(await decide(approved?.turnId ?? '', approved?.toolCallId ?? '')).toEqual([409, 'APPROVAL_EXPIRED']);
  const listed = await user.ask({ content: toolLines([['drive_list', {}]]), modelId: 'demo' });
  expect(toolOutputs(listed.chunks)).toMatchObject([{ entries: [{ name: 'a.txt' }] }]);
});
