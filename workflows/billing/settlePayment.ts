import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { failureOf, patiently } from '../retries.ts';

/** The provider's ids of notifications that came together. Their bodies are in the database. */
export interface SettlePaymentInput {
  eventIds: string[];
}

// Retried until done, since this is money. Heartbeats reveal a dead worker soon. Settling is one commit, so retries are
// safe.
const { settlePaymentEvent } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '10 seconds',
  retry: patiently,
});

// Tried once. Failed notifications get an activity of their own.
const { settlePaymentEvents } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { maximumAttempts: 1 },
});

/** Applies notifications of the payment provider, each once. Returns their number. */
export async function settlePayment(input: SettlePaymentInput): Promise<number> {
  const left = await settlePaymentEvents(input).catch((error: unknown) => {
    if (failureOf(error) === undefined) throw error;
    return input.eventIds;
  });
  await Promise.all(left.map((eventId) => settlePaymentEvent({ eventId })));
  return input.eventIds.length;
}
