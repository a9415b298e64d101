import { Client, Connection } from '@temporalio/client';
import { requestStop } from '../../models/chat/endTurn.ts';
import { sweeperScheduleId } from '../../temporal/workflowIds.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { toolLines } from '../builders/tools.ts';
import { buildTurnLog } from '../builders/turnLog.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('sweeping');

// A wish is a row, and a signal is only a hint. Here each wish is in its row but its signal was never sent, as if the
// process was killed in between or Temporal was away.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  // Makes the looks at checkouts rare, so that they do not do the sweeper's work.
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: '3600' });
  user = await product.user();
});
afterAll(() => product.close());

const question = toolLines([['ask_user', { question: 'Which colour?' }]]);

interface Purchase {
  checkoutId: string;
  operationId: string;
}

async function purchase(): Promise<Purchase> {
  await user.fetch(`/api/billing/${user.spaceId}/setup`, { method: 'POST', body: { initialCredits: 10 } });
  const answer = await user.fetch(`/api/billing/${user.spaceId}/top-up`, { method: 'POST', body: { amount: 10 } });
  return (await answer.json()) as Purchase;
}

const operationEnds = (operationId: string) =>
  waitFor('the end of the operation', async () => {
    const { status } = await user.get<{ status: string }>(`/api/operations/${operationId}`);
    return status !== 'running' && status;
  });

test('A waiting turn with a stop request stops, and the next message of its thread is answered', async () => {
  const { turnId, threadId } = await user.ask({ content: question, modelId: 'demo', mode: 'work' });
  expect(await user.turn(turnId)).toMatchObject({ status: 'waiting' });
  const next = user.ask({ content: '/say next', modelId: 'demo', threadId });
  const { database } = product.environment;
  const { turnLog } = buildTurnLog(database);
  expect(await requestStop({ database, turnLog }, turnId)).toBe('stopping');
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  expect((await next).text).toContain('next');
  await turnLog.close();
});

test('An operation with a cancel request ends as cancelled', async () => {
  const { operationId } = await purchase();
  await product.environment.database.pool.query('UPDATE operations SET cancel_requested_at = ? WHERE id = ?', [
    new Date(),
    operationId,
  ]);
  expect(await operationEnds(operationId)).toBe('cancelled');
});

full.test('The operation of an expired purchase ends as failed', async () => {
  const { checkoutId, operationId } = await purchase();
  await product.environment.database.pool.query(
    "UPDATE billing_checkouts SET status = 'expired', ended_at = ? WHERE id = ?",
    [new Date(), checkoutId],
  );
  expect(await operationEnds(operationId)).toBe('failed');
});

full.test('A lost schedule of the sweeper is made again', async () => {
  const { temporal, installation } = product.environment.config;
  const connection = await Connection.connect({ address: temporal.address });
  const { schedule } = new Client({ connection, namespace: temporal.namespace });
  const handle = schedule.getHandle(sweeperScheduleId(installation));
  await handle.delete();
  await waitFor('the schedule', () => handle.describe().catch(() => undefined));
  await connection.close();
});
