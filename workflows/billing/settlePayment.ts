import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';

export interface SettlePaymentInput {
  /** The provider's own id of the notification. Its body is in the database. */
  eventId: string;
}

// Money: tried until it is done, and soon after a worker has died. What it does is one commit, so trying again is
// harmless.
const { settlePaymentEvent } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '200 milliseconds', maximumInterval: '1 minute' },
});

/** Does what a notification of the payment provider says, once. Returns what came of it. */
export async function settlePayment({ eventId }: SettlePaymentInput): Promise<string> {
  return settlePaymentEvent({ eventId });
}
