import type { ProviderCharge, ProviderCheckout } from '../../integrations/billing/provider.ts';
import { type Checkout, creditCheckout, findCheckout } from '../../models/billing/checkouts.ts';
import { type Finding, noteFinding } from '../../models/billing/paymentEvents.ts';
import { transaction } from '../../models/database/database.ts';
import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';
import { checkoutOfSession, fileOtherAmount, isSameAmount } from './settlement.ts';

/** Sessions live for a day, and slow payments take up to two weeks. Older ones have been checked many times. */
const reconciledDays = 21;

export interface ReconciliationReport {
  looked: number;
  credited: number;
  unexplained: number;
}

/** Compares the provider's books with ours. */
export function createReconciliation(deps: BillingDeps) {
  const { database, logger, workflows } = deps;

  return {
    /** Credits payments that the provider has but we have not credited, and records findings that it cannot explain. */
    async reconcileCheckouts(): Promise<ReconciliationReport> {
      using heartbeat = keepAlive();
      const report: ReconciliationReport = { looked: 0, credited: 0, unexplained: 0 };
      const { provider } = deps.payments;
      if (provider === undefined) return report;
      const since = new Date(Date.now() - reconciledDays * 86_400_000);
      for await (const session of provider.checkoutsSince(since)) {
        heartbeat.cancelled.throwIfAborted();
        await compareSession(session, report);
      }
      for await (const charge of provider.chargesSince(since)) {
        heartbeat.cancelled.throwIfAborted();
        await compareCharge(charge, report);
      }
      return report;
    },
  };

  async function compareSession(session: ProviderCheckout, report: ReconciliationReport): Promise<void> {
    report.looked++;
    const checkout = await checkoutOfSession(database, session);
    if (!session.paid) {
      if (checkout?.status === 'paid') await note(report, session.sessionId, 'CREDITED_BUT_NOT_PAID');
    } else if (checkout === undefined) await note(report, session.sessionId, 'PAID_SESSION_OF_NO_CHECKOUT');
    else if (!isSameAmount(checkout, session)) await noteOtherAmount(report, checkout, session.sessionId);
    else await credit(report, checkout, session);
  }

  /**
   * Checks a charge of the saved means of payment. Skips charges of hosted checkouts, which their sessions cover, and
   * charges that are not ours.
   */
  async function compareCharge(charge: ProviderCharge, report: ReconciliationReport): Promise<void> {
    if (charge.checkoutId === null) return;
    const checkout = await findCheckout(database, 'id', charge.checkoutId);
    if (checkout?.kind === 'topUp') return;
    report.looked++;
    if (checkout === undefined) await note(report, charge.paymentId, 'PAID_CHARGE_OF_NO_CHECKOUT');
    else if (!isSameAmount(checkout, charge)) await noteOtherAmount(report, checkout, charge.paymentId);
    else await credit(report, checkout, { sessionId: null, paymentId: charge.paymentId });
  }

  async function credit(
    report: ReconciliationReport,
    checkout: Checkout,
    paid: Pick<ProviderCheckout, 'paymentId'> & { sessionId: string | null },
  ): Promise<void> {
    if (checkout.status === 'paid') return;
    if (await transaction(database, (tx) => creditCheckout(tx, checkout.id, paid))) report.credited++;
    await workflows.checkoutChanged(checkout);
  }

  async function noteOtherAmount(report: ReconciliationReport, checkout: Checkout, subjectId: string): Promise<void> {
    await note(report, subjectId, 'PAID_OTHER_AMOUNT');
    if (await fileOtherAmount(database, checkout, subjectId)) await workflows.checkoutChanged(checkout);
  }

  async function note(report: ReconciliationReport, subjectId: string, finding: Finding): Promise<void> {
    report.unexplained++;
    if (await noteFinding(database, subjectId, finding)) {
      logger.warn(
        { subjectId, finding },
        'The payment provider reports something that the ledger cannot explain. Run `billing check` for details.',
      );
    }
  }
}
