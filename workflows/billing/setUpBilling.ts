import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { endOfFailure } from './rules/billing.ts';

export interface SetUpBillingInput {
  operationId: string;
  spaceId: string;
}

// This calls another company, which may be down for an hour: final refusals are not retried, everything else is,
// patiently.
const { createBillingCustomer } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute', maximumAttempts: 30 },
});

// Rows only, but they are about money: retried until done.
const { finishBillingSetup } = proxyActivities<Activities>({
  startToCloseTimeout: '15 seconds',
  retry: { initialInterval: '200 milliseconds', maximumInterval: '30 seconds' },
});

/** Sets up a space's billing, once: the provider's customer, the accounts, the initial credits. */
export async function setUpBilling({ operationId, spaceId }: SetUpBillingInput): Promise<void> {
  await asOperation(operationId, async () => {
    try {
      await createBillingCustomer({ spaceId });
    } catch (error) {
      if (error instanceof ActivityFailure) return endOfFailure(error);
      throw error;
    }
    // Booking and ending are one commit.
    await CancellationScope.nonCancellable(() => finishBillingSetup({ spaceId, operationId }));
    return 'ended';
  });
}
