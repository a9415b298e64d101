import type { ChatUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { collect } from '../../support/sseClient.ts';

// The tools of agents for snapshots of computers.

let product: TestProduct;
let user: ChatUser;
let computer: TestComputer;
beforeAll(async () => {
  product = await buildHostingProduct();
  user = await product.user();
  computer = await buildComputer(product, user);
});
afterAll(() => product.close());

const work = { modelId: 'demo', mode: 'work' };

async function call<Output>(name: string, input: unknown): Promise<Output> {
  const { chunks } = await user.ask({ content: toolLines([[name, input]]), ...work });
  return toolOutputs(chunks)[0] as Output;
}

/** Calls a tool that asks first, and approves. */
async function approved(name: string, input: unknown): Promise<unknown> {
  const { chunks, turnId } = await user.ask({ content: toolLines([[name, input]]), ...work });
  const [asked] = chunks.flatMap((chunk) => (chunk.type === 'data-approval' ? [chunk.data] : []));
  expect(asked).toMatchObject({ toolName: name, state: 'asked' });
  const path = `/chat/turns/${turnId}/approvals/${asked?.toolCallId}`;
  await user.fetch(path, { method: 'POST', body: { approved: true } });
  await user.ended(turnId);
  return toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks)[0];
}

test('An agent takes a snapshot, and restores it once a person approves', async () => {
  expect(await call('computer_snapshot', {})).toBe('error: The computer was never used, so it has no home yet.');
  await computer.exec('echo old > file');
  const taken = await call<{ snapshotId: string }>('computer_snapshot', { name: 'Before risky work' });
  expect(taken).toEqual({
    snapshotId: expect.stringMatching(/^snp_/),
    name: 'Before risky work',
    computerId: computer.id,
  });
  await computer.exec('echo new > file');
  expect(await approved('computer_restore', { snapshotId: 'snp_unknown' })).toBe(
    `error: There is no such snapshot. The newest snapshots of the space: ${taken.snapshotId} "Before risky work" of ${computer.id}.`,
  );
  const restored = await approved('computer_restore', { snapshotId: taken.snapshotId });
  expect(restored).toEqual({ computerId: computer.id, restored: 'Before risky work' });
  expect((await computer.exec('cat file')).stdout).toBe('old\n');
});

test('An agent forks a computer once or several times', async () => {
  await computer.exec('echo shared > file');
  const one = await call<{ computers: { computerId: string }[] }>('computer_fork', { name: 'Copy' });
  expect(one).toEqual({ computers: [{ computerId: expect.stringMatching(/^cmp_/), name: 'Copy' }] });
  const two = await call<typeof one>('computer_fork', { count: 2, name: 'Try' });
  expect(two).toMatchObject({ computers: [{ name: 'Try 1' }, { name: 'Try 2' }], snapshotId: expect.any(String) });
  for (const { computerId } of [...one.computers, ...two.computers]) {
    expect((await computerOf(user, computerId).exec('cat file')).stdout).toBe('shared\n');
  }
});
