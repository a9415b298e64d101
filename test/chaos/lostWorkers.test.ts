import { Client, Connection } from '@temporalio/client';
import { acceptMessage } from '../../models/chat/acceptMessage.ts';
import { turnWorkflowId } from '../../temporal/workflowIds.ts';
import { idsOf } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { buildTurnLog } from '../builders/turnLog.ts';
import { startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { collect, untilChunk } from '../support/sseClient.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2', ATRIUM_LOG_LEVEL: 'warn' });
});

afterAll(async () => {
  await product.close();
});

it('A worker that lost its turn while it was paused writes nothing more', async () => {
  const user = await product.user();
  await product.process.stop();
  product.process = await startProduct(product.environment, 'api', { ATRIUM_API_CALLS_MODELS: 'false' });
  const paused = await startProduct(product.environment, 'worker');
  const stream = await user.send({ content: fake({ tokens: 100, intervalMs: 20 }), modelId: 'fake-1' });
  const { turnId } = idsOf(stream);
  await untilChunk(stream, ({ type }) => type === 'text-delta');
  await paused.kill('SIGSTOP');
  const successor = await startProduct(product.environment, 'worker');
  const rest = await collect(stream);
  expect(rest.complete).toBe(true);
  expect(rest.chunks.map(({ type }) => type)).toContain('data-attempt');
  const { turnLog } = buildTurnLog(product.environment.database);
  const before = await turnLog.read(turnId, 0, 100_000);

  await paused.kill('SIGCONT');
  // The worker reads on until an append finds that it is no longer the writer, or a heartbeat finds that its work was
  // given away. After its orderly stop it is done with the turn.
  await paused.stop();
  expect(await turnLog.read(turnId, 0, 100_000)).toEqual(before);
  const turn = await user.turn(turnId);
  expect(turn.status).toBe('completed');
  expect(await user.answerOf(turn)).toBe(Array.from({ length: 100 }, (_, token) => `w${token} `).join(''));

  await turnLog.close();
  await successor.stop();
  await product.process.stop();
  await product.restart();
});

it('A turn whose workflow an operator terminates fails with WORKFLOW_LOST and keeps its text', async () => {
  const user = await product.user();
  const stream = await user.send({ content: fake({ tokens: 2_000, intervalMs: 20 }), modelId: 'fake-1' });
  const { turnId } = idsOf(stream);
  await untilChunk(stream, ({ type }) => type === 'text-delta');
  const { temporal } = product.environment.config;
  const connection = await Connection.connect({ address: temporal.address });
  const client = new Client({ connection, namespace: temporal.namespace });
  await client.workflow.getHandle(turnWorkflowId(turnId)).terminate('by hand');
  await connection.close();

  const rest = await collect(stream);
  expect(rest.chunks.at(-1)).toMatchObject({ type: 'error', code: 'WORKFLOW_LOST' });
  const turn = await user.ended(turnId);
  expect(turn).toMatchObject({ status: 'failed', error: { code: 'WORKFLOW_LOST' } });
  expect(await user.answerOf(turn)).toMatch(/^w0 /);
  // The thread is free for the next message.
  const next = await user.ask({ content: fake({ tokens: ['again'] }), modelId: 'fake-1', threadId: turn.threadId });
  expect(next.text).toBe('again');
});

it('A turn whose process was killed before it started the workflow is started', async () => {
  const user = await product.user();
  const { turn } = await acceptMessage(product.environment.database, {
    userId: user.id,
    spaceId: user.spaceId,
    authority: { scopes: null, apiKeyId: null },
    parts: [{ type: 'text', text: fake({ tokens: ['found'] }), state: 'done' }],
    mode: 'ask',
    modelId: 'fake-1',
    effort: null,
    notificationPriority: 'default',
    onBusy: 'queue',
  });
  const ended = await user.ended(turn.id);
  expect(ended.status).toBe('completed');
  expect(await user.answerOf(ended)).toBe('found');
});
