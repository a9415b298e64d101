import { createCheckoutActivities } from './checkouts.ts';
import type { BillingDeps } from './deps.ts';
import { createReconciliation } from './reconcile.ts';
import { createSettlements } from './settlePaymentEvent.ts';
import { createStorageMetering } from './storage.ts';
import { billingSweeps, createBillingSweeps } from './sweeps.ts';

function createBillingActivities(deps: BillingDeps) {
  return {
    ...createCheckoutActivities(deps),
    ...createSettlements(deps),
    ...createReconciliation(deps),
    ...createStorageMetering(deps),
    ...createBillingSweeps(deps),
  };
}

export const billing = { create: createBillingActivities, sweeps: billingSweeps };
