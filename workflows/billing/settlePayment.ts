import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';

export interface SettlePaymentInput {
  /** The provider's own id of the notification. Its body is in the database. */
  eventId: string;
}

// Money: retried until done, and soon after a worker has died. It is one commit, so retrying is harmless.
const { settlePaymentEvent } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '200 milliseconds', maximumInterval: '1 minute' },
});

/** Applies a notification of the payment provider, once. Returns the outcome. */
export async function settlePayment({ eventId }: SettlePaymentInput): Promise<string> {
  return settlePaymentEvent({ eventId });
}
