import { MockActivityEnvironment } from '@temporalio/testing';
import type { BillingDeps } from '../../../activities/billing/deps.ts';
import { createBillingSweeps } from '../../../activities/billing/sweeps.ts';
import { reserve } from '../../../models/billing/holds.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, buildCredits } from '../../builders/billing.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** Lets all sweeps of holds look, and returns what the space has reserved. */
async function sweptOf(spaceId: string, id: string, ageMs: number): Promise<number> {
  const { config, database } = environment;
  const sql = 'UPDATE billing_holds SET created_at = ? WHERE id = ?';
  await database.pool.query(sql, [new Date(Date.now() - ageMs), id]);
  const sweeps = createBillingSweeps({ config, database, workflows: {} } as BillingDeps);
  await new MockActivityEnvironment().run(sweeps.sweepHolds);
  await new MockActivityEnvironment().run(sweeps.sweepHoldsWithoutTurn);
  return (await balancesOf(database, spaceId)).reserved ?? 0;
}

test('The hold of a call without a turn stays for as long as the call may last, and is released afterwards', async () => {
  const { config, database } = environment;
  const spaceId = await buildCredits(database, 1);
  const id = 'emb_1:0';
  await transaction(database, (tx) =>
    reserve(tx, {
      ...{ id, spaceId, userId: 'usr_1', turnId: null, modelId: 'e', inputTokens: 1 },
      ...{ atLeast: 1_000, atMost: 1_000, enforced: true },
    }),
  );
  const { idleTimeoutMs } = config.llm;
  const graceMs = config.sweeper.graceSeconds * 1_000;
  expect(await sweptOf(spaceId, id, graceMs + idleTimeoutMs / 2)).toBe(1_000);
  expect(await sweptOf(spaceId, id, graceMs + idleTimeoutMs + 1_000)).toBe(0);
});
