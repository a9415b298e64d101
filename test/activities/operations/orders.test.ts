import { Client, Connection, WorkflowFailedError } from '@temporalio/client';
import { type OperationKind, operationModels } from '../../../models/operations/operation.ts';
import { areaSchemas } from '../../../models/purge.ts';
import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { operationWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { driveOf } from '../../builders/drive.ts';
import { contentsOf, fillSpace, indexTexts } from '../../builders/fullSpace.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';

const tables = areaSchemas.flatMap(({ ofTurn = [], ofThread = [], ofSpace = [], own = [] }) => [
  ...ofTurn,
  ...ofThread,
  ...ofSpace,
  ...own,
]);

let product: TestProduct;
let user: ChatUser;
let connection: Connection;
let threadId: string;
let itemId: string;
beforeAll(async () => {
  // Keeps the sweeper away from operations that these tests begin by hand.
  product = await buildProduct({ ATRIUM_SWEEP_GRACE_SECONDS: '3600' });
  connection = await Connection.connect({ address: product.environment.config.temporal.address });
  user = await product.user();
  await fillSpace(product, user);
  const drive = driveOf(product, user);
  itemId = (await drive.put('/b.txt', 'stays')).id;
  const trashed = await drive.put('/c.txt', 'stays in the trash');
  await drive.send('DELETE', `/items/${trashed.id}`);
  threadId = (await user.ask({ content: '/say hello', modelId: 'demo' })).threadId;
  await indexTexts(product.environment.database);
});
afterAll(async () => {
  await connection.close();
  await product.close();
});

/** Starts a workflow like an attacker who can reach Temporal, and returns the type of its failure. */
async function startByHand(workflow: string, input: object, workflowId = `${workflow} by hand`): Promise<unknown> {
  const { config } = product.environment;
  const client = new Client({ connection, namespace: config.temporal.namespace });
  const handle = await client.workflow.start(workflow, {
    workflowId: `${workflowId}`,
    taskQueue: mainTaskQueue(config.installation),
    args: [{ heartbeatTimeoutMs: 10_000, ...input }],
  });
  const failure = await handle.result().catch((error: unknown) => error);
  if (!(failure instanceof WorkflowFailedError)) throw new Error('The workflow has not failed.');
  return (failure.cause?.cause as { type?: string } | undefined)?.type;
}

async function expectNothingDone(work: () => Promise<unknown>): Promise<void> {
  const before = await contentsOf(product.environment.database, tables);
  expect(await work()).toBe('NOT_ORDERED');
  expect(await contentsOf(product.environment.database, tables)).toEqual(before);
}

/** A running operation. Its subject need not be deleted. */
const begin = (kind: OperationKind, subjectId: string, spaceId = user.spaceId) =>
  operationModels(product.environment.database).Operation.begin({ kind, spaceId, userId: user.id, subjectId });

const purges: [string, string, () => object][] = [
  ['a living space', 'purgeDeleted', () => ({ scope: { spaceId: user.spaceId } })],
  ['a living thread', 'purgeDeleted', () => ({ scope: { threadId } })],
  ['a living item', 'purgeTrash', () => ({ spaceId: user.spaceId, itemId })],
  ['a trash that nobody empties', 'purgeTrash', () => ({ spaceId: user.spaceId, itemId: null })],
];

test.each(purges)('A purge of %s that is started by hand destroys nothing', async (_what, workflow, input) => {
  await expectNothingDone(() => startByHand(workflow, { operationId: 'op_none', ...input() }));
});

test.each(purges)('A purge of %s that names another deletion destroys nothing', async (_what, workflow, input) => {
  const stranger = await product.user();
  await driveOf(product, stranger).put('/own.txt');
  for (const kind of ['deleteSpace', 'deleteThread', 'purgeItem', 'emptyTrash'] as const) {
    const { id: operationId } = await begin(kind, stranger.spaceId, stranger.spaceId);
    const workflowId = operationWorkflowId(kind, operationId);
    await expectNothingDone(() => startByHand(workflow, { operationId, ...input() }, workflowId));
  }
});

test.each([
  ['deleteSpace', () => user.spaceId, ...(purges[0] ?? [])],
  ['deleteThread', () => threadId, ...(purges[1] ?? [])],
  ['purgeItem', () => itemId, ...(purges[2] ?? [])],
] as [OperationKind, () => string, string, string, () => object][])(
  'A purge with a %s operation destroys nothing while its subject is not deleted',
  async (kind, subjectOf, _what, workflow, input) => {
    const { id: operationId } = await begin(kind, subjectOf());
    const workflowId = operationWorkflowId(kind, operationId);
    await expectNothingDone(() => startByHand(workflow, { operationId, ...input() }, workflowId));
  },
);

test('A purge destroys nothing after its operation has ended', async () => {
  const operation = await begin('emptyTrash', 'drive');
  await operation.update({ status: 'succeeded', endedAt: new Date() });
  const workflowId = operationWorkflowId('emptyTrash', operation.id);
  const input = { operationId: operation.id, spaceId: user.spaceId, itemId: null };
  await expectNothingDone(() => startByHand('purgeTrash', input, workflowId));
});

test('A purge that is started by hand stops no turn and ends no operation', async () => {
  const stream = await user.send({ content: fake({ tokens: 500, intervalMs: 20 }), modelId: 'fake-1' });
  const turnId = stream.response.headers.get('x-turn-id') ?? '';
  const { id: operationId } = await begin('deleteThread', 'thr_none');
  expect(await startByHand('purgeDeleted', { operationId, scope: { spaceId: user.spaceId } })).toBe('NOT_ORDERED');
  const { Operation } = operationModels(product.environment.database);
  expect((await Operation.findByPk(operationId))?.status).toBe('running');
  expect((await user.turn(turnId)).status).toBe('running');
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  await user.ended(turnId);
});
