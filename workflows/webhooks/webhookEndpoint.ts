import { condition, continueAsNew, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type { WebhookQueueActivities } from '../../activities/main.ts';
import { isHistoryFull } from '../historyLimit.ts';

/** Ids and limits only: what is sent is in rows. */
export interface WebhookEndpointInput {
  endpointId: string;
  /** Where deliveries are made. */
  webhookQueue: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** There may be a delivery that is due, or somebody has changed the endpoint. */
export const webhooksWaitSignal = defineSignal('waits');

/**
 * One endpoint, for as long as deliveries wait for it: a single activity makes them, so that however many there are and
 * however long it takes to answer, it holds one place of the queue, and goes to its end after each turn.
 */
export async function webhookEndpoint(input: WebhookEndpointInput): Promise<void> {
  const { endpointId, webhookQueue, heartbeatTimeoutMs } = input;
  // An endpoint that does not answer is no failure of the activity. What fails is the database, which comes back.
  const { deliverWebhooks } = proxyActivities<WebhookQueueActivities>({
    taskQueue: webhookQueue,
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
  });
  let told = 0;
  setHandler(webhooksWaitSignal, () => void told++);
  for (;;) {
    const seen = told;
    const waitMs = await deliverWebhooks({ endpointId });
    if (waitMs === null && told === seen) return;
    if (waitMs !== null && waitMs > 0) await condition(() => told > seen, waitMs);
    if (isHistoryFull(input)) await continueAsNew<typeof webhookEndpoint>(input);
  }
}
