import { beginAutoTopUp, spacesToTopUp } from '../../models/billing/autoTopUp.ts';
import { purgeDayUse } from '../../models/billing/caps.ts';
import { endedCheckouts } from '../../models/billing/checkouts.ts';
import { coverDebt } from '../../models/billing/debt.ts';
import { expireGrants } from '../../models/billing/grants.ts';
import { release } from '../../models/billing/holds.ts';
import { lockBalances } from '../../models/billing/ledger.ts';
import { unsettledEvents } from '../../models/billing/paymentEvents.ts';
import {
  expiredGrants,
  holdsWithoutTurn,
  purgeOldHolds,
  type StaleCredits,
  staleHolds,
} from '../../models/billing/staleCredits.ts';
import { transaction } from '../../models/database/database.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { BillingDeps } from './deps.ts';
import { noticeLowBalances } from './lowBalances.ts';

const maxRows = 500;

/** Sweeps for billing. Each is idempotent. */
export function createBillingSweeps(deps: BillingDeps) {
  const { database, config, logger, workflows } = deps;
  const graceMs = config.sweeper.graceSeconds * 1_000;
  const before = () => new Date(Date.now() - graceMs);
  const releaseHold = async ({ id, spaceId }: StaleCredits) => {
    await transaction(database, (tx) => release(tx, spaceId, id));
    return 'ended' as const;
  };

  return {
    /** Releases holds of ended turns, and of messages that never became a turn. */
    sweepHolds: (): Promise<SweepReport> =>
      sweepEach<StaleCredits>({
        logger,
        before: before(),
        page: (page) => staleHolds(database, page),
        look: releaseHold,
      }),

    /** Releases holds of calls without a turn whose process died. A call that runs has ended by then. */
    sweepHoldsWithoutTurn: (): Promise<SweepReport> =>
      sweepEach<StaleCredits>({
        logger,
        before: new Date(before().getTime() - config.llm.idleTimeoutMs),
        page: (page) => holdsWithoutTurn(database, page),
        look: releaseHold,
      }),

    /** Removes the daily sums of caps once they are too old. */
    async purgeDayUse(): Promise<number> {
      using heartbeat = keepAlive();
      return purgeDayUse(database, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Removes old holds that were settled or released. */
    async purgeOldHolds(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return purgeOldHolds(database, old, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Ends expired credits. Until then nobody can spend them, since every use checks the expiry. */
    sweepGrants: (): Promise<SweepReport> =>
      sweepEach<StaleCredits>({
        logger,
        before: new Date(),
        page: (page) => expiredGrants(database, page),
        async look({ spaceId }) {
          await transaction(database, async (tx) => {
            const balances = await lockBalances(tx, spaceId);
            await expireGrants(tx, balances);
            await coverDebt(tx, balances);
          });
          return 'ended';
        },
      }),

    /** Starts settlements again whose workflow never started or has vanished. */
    sweepPaymentEvents: (): Promise<SweepReport> =>
      sweepEach({
        logger,
        before: before(),
        page: (page) => unsettledEvents(database, page),
        look: async ({ id }) => asSwept(await workflows.settleAgain(id), 'started'),
      }),

    /** Signals workflows that still wait although their purchase is over: they missed the signal. */
    sweepCheckouts: (): Promise<SweepReport> =>
      sweepEach({
        logger,
        before: before(),
        page: (page) => endedCheckouts(database, page),
        look: async ({ id }) =>
          asSwept(await workflows.checkoutChanged({ kind: 'topUp', operationId: id }), 'reminded'),
      }),

    /** Starts due top-ups, and tells the owners of spaces that are low on credits. */
    async sweepBalances(): Promise<number> {
      using heartbeat = keepAlive();
      await noticeLowBalances(deps);
      const { provider } = deps.payments;
      if (provider === undefined) return 0;
      const { currency, microPerMinor } = config.billing;
      const microOf = (amountMinor: number) => amountMinor * microPerMinor;
      let begun = 0;
      for (let last = ''; ; ) {
        const due = await spacesToTopUp(database, last, maxRows);
        const next = due.at(-1);
        if (next === undefined) return begun;
        last = next;
        for (const spaceId of due) {
          heartbeat.cancelled.throwIfAborted();
          try {
            const operation = await beginAutoTopUp(database, spaceId, { currency, provider: provider.name, microOf });
            if (operation === undefined) continue;
            await workflows.startOperation(operation);
            begun++;
          } catch (error) {
            logger.warn({ err: error, spaceId }, 'An automatic top-up could not be begun; the next sweep tries again.');
          }
        }
      }
    },
  };
}

export const billingSweeps = {
  rescue: [
    'sweepHolds',
    'sweepHoldsWithoutTurn',
    'sweepGrants',
    'sweepPaymentEvents',
    'sweepCheckouts',
    'sweepBalances',
  ],
  upkeep: ['purgeDayUse', 'purgeOldHolds'],
} as const satisfies Sweeps<keyof ReturnType<typeof createBillingSweeps>>;
