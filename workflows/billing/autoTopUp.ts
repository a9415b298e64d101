import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rarely, rows } from '../retries.ts';

export interface AutoTopUpInput {
  operationId: string;
  checkoutId: string;
}

// The provider's idempotency key makes all tries one charge, so it is safe to repeat after a crash in the middle.
const { chargeCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { ...rarely, maximumAttempts: 20 },
});

const { endCheckoutOperation } = proxyActivities<Activities>(rows);

/** Charges the saved means of payment of a space that has few credits left. */
export async function autoTopUp({ operationId, checkoutId }: AutoTopUpInput): Promise<void> {
  try {
    await chargeCheckout({ checkoutId });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
  }
  await CancellationScope.nonCancellable(() => endCheckoutOperation({ operationId, checkoutId }));
}
