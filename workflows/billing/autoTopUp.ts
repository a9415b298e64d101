import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rarely, rows } from '../retries.ts';

export interface AutoTopUpInput {
  operationId: string;
  checkoutId: string;
}

// The provider's idempotency key makes all attempts one charge, so repeating after a crash is safe.
const { chargeCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { ...rarely, maximumAttempts: 20 },
});

const { endCheckoutOperation } = proxyActivities<Activities>(rows);

/** Charges the saved means of payment of a space that is low on credits. */
export async function autoTopUp({ operationId, checkoutId }: AutoTopUpInput): Promise<void> {
  try {
    await chargeCheckout({ checkoutId });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
  }
  await CancellationScope.nonCancellable(() => endCheckoutOperation({ operationId, checkoutId }));
}
