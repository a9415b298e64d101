import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { patiently, rows } from '../retries.ts';
import { endOfFailure } from './rules/billing.ts';

export interface SetUpBillingInput {
  operationId: string;
  spaceId: string;
}

// Calls another company, which may be down for an hour. Retries patiently, except after a final refusal.
const { createBillingCustomer } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { ...patiently, maximumAttempts: 30 },
});

const { finishBillingSetup } = proxyActivities<Activities>(rows);

/** Sets up a space's billing once: the provider's customer, the accounts, the initial credits. */
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
