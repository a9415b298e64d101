import { proxyActivities } from '@temporalio/workflow';
import type { WebhookQueueActivities } from '../../activities/main.ts';
import { type ActorInput, live } from '../actor.ts';
import { patiently } from '../retries.ts';

export interface WebhookEndpointInput extends ActorInput {
  endpointId: string;
  /** The queue of the activity that makes deliveries. */
  webhookQueue: string;
}

/**
 * One endpoint, for as long as deliveries wait for it. The activity that looks also makes the deliveries that are due,
 * so that an endpoint holds one place of the queue, however many deliveries wait and however long it takes to answer. It
 * goes to the end of the queue after each turn.
 */
export async function webhookEndpoint(input: WebhookEndpointInput): Promise<void> {
  const { endpointId, webhookQueue, heartbeatTimeoutMs } = input;
  // An endpoint that does not answer is no failure of the activity. Only our own parts fail, and they come back.
  const { deliverWebhooks } = proxyActivities<WebhookQueueActivities>({
    taskQueue: webhookQueue,
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: patiently,
  });
  await live(input, { look: () => deliverWebhooks({ endpointId }), steps: {} });
}
