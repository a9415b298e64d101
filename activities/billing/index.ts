import { createCheckoutActivities } from './checkouts.ts';
import type { BillingDeps } from './deps.ts';
import { createReconciliation } from './reconcile.ts';
import { createSettlements } from './settlePaymentEvent.ts';
import { createStorageMetering } from './storage.ts';
import { createBillingSweeps } from './sweeps.ts';

export function createBillingActivities(deps: BillingDeps) {
  return {
    ...createCheckoutActivities(deps),
    ...createSettlements(deps),
    ...createReconciliation(deps),
    ...createStorageMetering(deps),
    ...createBillingSweeps(deps),
  };
}
