import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { endOfFailure } from './rules/billing.ts';

export interface SetUpBillingInput {
  operationId: string;
  spaceId: string;
}

// Another company answers, or is away for an hour: what it refuses for good is not retried, the rest is patient.
const { createBillingCustomer } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute', maximumAttempts: 30 },
});

// Rows only, and money in them: tried until it is done.
const { finishBillingSetup } = proxyActivities<Activities>({
  startToCloseTimeout: '15 seconds',
  retry: { initialInterval: '200 milliseconds', maximumInterval: '30 seconds' },
});

/** Sets a space's billing up: the provider's customer, the accounts, the initial credits, once. */
export async function setUpBilling({ operationId, spaceId }: SetUpBillingInput): Promise<void> {
  await asOperation(operationId, async () => {
    try {
      await createBillingCustomer({ spaceId });
    } catch (error) {
      if (error instanceof ActivityFailure) return endOfFailure(error);
      throw error;
    }
    // Booked and ended in one commit.
    await CancellationScope.nonCancellable(() => finishBillingSetup({ spaceId, operationId }));
    return 'ended';
  });
}
