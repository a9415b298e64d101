import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';
import { settleEvent } from './settlement.ts';

/** Applies a stored notification, and tells the purchase's workflow. */
export function createSettlePaymentEvent(deps: BillingDeps) {
  return async function settlePaymentEvent({ eventId }: { eventId: string }): Promise<string> {
    using _heartbeat = keepAlive();
    const { outcome, checkout } = await settleEvent(deps, eventId);
    if (outcome === 'unexplained')
      deps.logger.warn({ eventId }, 'A payment notification cannot be explained; `billing check` says why.');
    if (checkout !== undefined) await deps.workflows.checkoutChanged(checkout);
    return outcome;
  };
}
