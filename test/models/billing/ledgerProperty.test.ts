import fc from 'fast-check';
import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import { charge, grant, topUp, transfer } from '../../../models/billing/credits.ts';
import { release, reserve, settle } from '../../../models/billing/holds.ts';
import { microPerCredit } from '../../../models/billing/money.ts';
import { reverse } from '../../../models/billing/reversals.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, expectBooksInOrder } from '../../builders/billing.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { sizeOf } from '../../support/size.ts';
import { LedgerModel, type Step, steps } from './ledgerModel.ts';

// After any history of steps, the ledger's balances equal those of a small model.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(async () => {
  await expectBooksInOrder(environment.database);
  await environment.close();
});

test('The ledger has the balances of a small model after each step of random histories', async () => {
  const runs = sizeOf('LEDGER_RUNS', 60);
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const model = new LedgerModel();
      const spaces = [newId('space'), newId('space')] as const;
      for (const step of history) {
        const expected = model.apply(step);
        expect({ step, outcome: await perform(spaces, step) }).toEqual({ step, outcome: expected });
        for (const space of [0, 1] as const) {
          expect(await balancesOf(environment.database, spaces[space])).toEqual(inMicro(model.spaces[space].balances));
        }
      }
    }),
    { numRuns: runs },
  );
}, 600_000);

function inMicro(balances: Partial<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(balances).map(([account, n = 0]) => [account, n * microPerCredit]));
}

/** The amounts of the payments that were made. A reversal needs them. */
const paid = new Map<string, number>();

async function perform(spaces: readonly [string, string], step: Step): Promise<'refused' | undefined> {
  const spaceId = step.space === 0 ? spaces[0] : spaces[1];
  const other = step.space === 0 ? spaces[1] : spaces[0];
  const micro = 'credits' in step ? step.credits * microPerCredit : 0;
  const sourceId = 'source' in step ? `${step.do}:${spaceId}:${step.source}` : '';
  try {
    await transaction(environment.database, async (tx) => {
      switch (step.do) {
        case 'grant':
          return grant(tx, { spaceId, sourceId, micro });
        case 'topUp':
          if (await topUp(tx, { spaceId, sourceId, micro })) paid.set(sourceId, micro);
          return;
        case 'charge':
          return charge(tx, { spaceId, sourceId, micro, kind: 'storage', enforced: step.enforced });
        case 'transfer':
          return transfer(tx, { from: spaceId, to: other, micro, sourceId: `transfer:${spaces[0]}:${step.source}` });
        case 'reserve': {
          const call = { ...callOf(spaceId, step.call), inputTokens: 1, atLeast: micro, atMost: micro };
          return reserve(tx, { ...call, enforced: step.enforced });
        }
        case 'settle':
          return settle(tx, { ...callOf(spaceId, step.call), cost: micro, enforced: step.enforced });
        case 'release':
          return release(tx, spaceId, callOf(spaceId, step.call).id);
        case 'reverse': {
          const payment = `topUp:${spaceId}:${step.source}`;
          const brought = paid.get(payment);
          if (brought === undefined) return;
          const reversal = { sourceId: `refund:${payment}:${step.reversal}`, kind: 'refund', micro } as const;
          const whole = { spaceId, sourceId: payment, micro: brought, detail: 'x' };
          return reverse(tx, whole, { ...reversal, returned: step.returned });
        }
      }
    });
    return undefined;
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'paymentRequired') return 'refused';
    throw error;
  }
}

const callOf = (spaceId: string, call: number) => ({
  ...{ id: `${spaceId}:${call}`, spaceId, userId: 'usr_1', turnId: `${spaceId}:${call}`, modelId: 'm' },
});
