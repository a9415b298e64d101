import { createCheckoutActivities } from './checkouts.ts';
import type { BillingDeps } from './deps.ts';
import { createReconciliation } from './reconcile.ts';
import { createSettlePaymentEvent } from './settlePaymentEvent.ts';
import { createStorageMetering } from './storage.ts';
import { createBillingSweeps } from './sweeps.ts';

export function createBillingActivities(deps: BillingDeps) {
  return {
    ...createCheckoutActivities(deps),
    settlePaymentEvent: createSettlePaymentEvent(deps),
    ...createReconciliation(deps),
    ...createStorageMetering(deps),
    ...createBillingSweeps(deps),
  };
}
