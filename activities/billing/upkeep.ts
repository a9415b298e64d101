import { QueryTypes } from 'sequelize';
import { beginAutoTopUp, spacesToTopUp } from '../../models/billing/autoTopUp.ts';
import { creditCheckout } from '../../models/billing/checkouts.ts';
import { charge } from '../../models/billing/credits.ts';
import { coverDebt } from '../../models/billing/debt.ts';
import { expireGrants } from '../../models/billing/grants.ts';
import { release } from '../../models/billing/holds.ts';
import { lockBalances } from '../../models/billing/ledger.ts';
import { toMicro } from '../../models/billing/money.ts';
import { noteFinding, unsettledBefore } from '../../models/billing/paymentEvents.ts';
import { noteLowBalances } from '../../models/billing/report.ts';
import { transaction } from '../../models/database.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { checkoutOfSession, isSameAmount, settleEvent } from './settlement.ts';

const maxRows = 500;
const gibibyte = 1024 ** 3;
/** Sessions live for a day, and a payment that takes its time for two weeks; what is older has been looked at often. */
const reconciledDays = 21;

/** What the sweeper and the schedules do for billing. Each is idempotent. */
export function createBillingUpkeep(deps: ActivityDeps) {
  const { database, config, workflows, logger } = deps;
  const graceMs = config.sweeper.graceSeconds * 1_000;
  const before = () => new Date(Date.now() - graceMs);
  const rows = <Row extends object>(sql: string, replacements: unknown[]) =>
    database.sequelize.query<Row>(sql, { replacements, type: QueryTypes.SELECT });

  return {
    /** Does what a kept notification says, and tells the purchase's workflow. */
    async settlePaymentEvent({ eventId }: { eventId: string }): Promise<string> {
      const { outcome, checkout } = await settleEvent(deps, eventId);
      if (outcome === 'unexplained') logger.warn({ eventId }, 'A payment notification is about nothing of ours.');
      if (checkout !== undefined) await workflows.checkoutChanged(checkout);
      return outcome;
    },

    /** What is set aside for turns that have ended, or for messages that never became one. */
    async sweepHolds(): Promise<number> {
      const stale = await rows<{ id: string; spaceId: string }>(
        `SELECT h.id, h.space_id AS spaceId FROM billing_holds h LEFT JOIN turns t ON t.id = h.turn_id
          WHERE h.status = 'open' AND h.created_at < ? AND (t.id IS NULL OR t.terminal = 1) LIMIT ${maxRows}`,
        [before()],
      );
      for (const { id, spaceId } of stale) await transaction(database, (tx) => release(tx, spaceId, id));
      return stale.length;
    },

    /** Credits whose time is over. Nobody can spend them before this either: each use looks for itself. */
    async sweepGrants(): Promise<number> {
      const spaces = await rows<{ spaceId: string }>(
        `SELECT DISTINCT space_id AS spaceId FROM billing_grants WHERE expires_at <= ? AND remaining > 0 LIMIT ${maxRows}`,
        [new Date()],
      );
      for (const { spaceId } of spaces) {
        await transaction(database, async (tx) => {
          const balances = await lockBalances(tx, spaceId);
          await expireGrants(tx, balances);
          await coverDebt(tx, balances);
        });
      }
      return spaces.length;
    },

    /** Notifications whose workflow was never started, or has vanished. */
    async sweepPaymentEvents(): Promise<number> {
      const events = await unsettledBefore(database, before(), maxRows);
      for (const eventId of events) await workflows.startSettlement(eventId);
      return events.length;
    },

    /** Starts the top-ups that are due, and notes who has few credits left. */
    async sweepBalances(): Promise<number> {
      for (const spaceId of await noteLowBalances(database, config.billing.lowBalanceMicro)) {
        logger.info({ spaceId }, 'The space has few credits left.');
      }
      const { provider } = deps.payments;
      if (provider === undefined) return 0;
      const due = await spacesToTopUp(database, maxRows);
      for (const spaceId of due) {
        const { currency, microPerMinor } = config.billing;
        const microOf = (amountMinor: number) => amountMinor * microPerMinor;
        const operation = await beginAutoTopUp(database, spaceId, { currency, provider: provider.name, microOf });
        if (operation !== undefined) await workflows.startOperation(operation);
      }
      return due.length;
    },

    /** Books yesterday's storage, once for each space and day, where it has a price. */
    async meterStorage(): Promise<number> {
      const { storageCreditsPerGibDay, enforced } = config.billing;
      if (storageCreditsPerGibDay === 0) return 0;
      const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
      const drives = await rows<{ spaceId: string; bytes: number }>(
        `SELECT d.space_id AS spaceId, d.used_bytes AS bytes FROM drives d JOIN spaces s ON s.id = d.space_id
           LEFT JOIN ledger_transactions t ON t.source_id = CONCAT('storage:', d.space_id, ':', ?)
          WHERE d.used_bytes > 0 AND s.deleted_at IS NULL AND t.id IS NULL LIMIT ${maxRows}`,
        [day],
      );
      for (const { spaceId, bytes } of drives) {
        const micro = Math.ceil(toMicro(storageCreditsPerGibDay) * (Number(bytes) / gibibyte));
        const movement = { spaceId, sourceId: `storage:${spaceId}:${day}`, micro, detail: `${bytes} bytes` };
        await transaction(database, (tx) => charge(tx, { ...movement, kind: 'storage', enforced }));
      }
      return drives.length;
    },

    /** Finds what the provider says is paid and we have not credited, credits it, and notes what it cannot explain. */
    async reconcileCheckouts(): Promise<{ looked: number; credited: number; unexplained: number }> {
      using heartbeat = keepAlive();
      const report = { looked: 0, credited: 0, unexplained: 0 };
      const { provider } = deps.payments;
      if (provider === undefined) return report;
      for await (const session of provider.checkoutsSince(new Date(Date.now() - reconciledDays * 86_400_000))) {
        heartbeat.cancelled.throwIfAborted();
        report.looked++;
        if (!session.paid) continue;
        const checkout = await checkoutOfSession(database, session);
        if (checkout === undefined || !isSameAmount(checkout, session)) {
          report.unexplained++;
          const finding = checkout === undefined ? 'PAID_SESSION_OF_NO_CHECKOUT' : 'PAID_OTHER_AMOUNT';
          if (await noteFinding(database, session.sessionId, finding)) {
            logger.warn({ sessionId: session.sessionId, finding }, 'A payment cannot be explained.');
          }
        } else if (checkout.status !== 'paid') {
          const credited = await transaction(database, (tx) => creditCheckout(tx, checkout.id, session));
          if (credited) report.credited++;
          await workflows.checkoutChanged(checkout);
        }
      }
      return report;
    },
  };
}
