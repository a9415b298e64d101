import { ActivityFailure, isCancellation, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { patiently } from '../retries.ts';

/** The provider's own ids of notifications, of those that came together. Their bodies are in the database. */
export interface SettlePaymentInput {
  eventIds: string[];
}

// Money: retried until done. A worker that has died is noticed soon. It is one commit, so retrying is harmless.
const { settlePaymentEvent } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: patiently,
});

// Tried once: what does not go well is left to an activity of its own.
const { settlePaymentEvents } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { maximumAttempts: 1 },
});

/** Applies notifications of the payment provider, each once. Returns how many there were. */
export async function settlePayment(input: SettlePaymentInput): Promise<number> {
  const left = await settlePaymentEvents(input).catch((error: unknown) => {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return input.eventIds;
  });
  await Promise.all(left.map((eventId) => settlePaymentEvent({ eventId })));
  return input.eventIds.length;
}
