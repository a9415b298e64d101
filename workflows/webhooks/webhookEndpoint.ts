import { proxyActivities } from '@temporalio/workflow';
import type { WebhookQueueActivities } from '../../activities/main.ts';
import { type ActorInput, live } from '../actor.ts';
import { patiently } from '../retries.ts';

export interface WebhookEndpointInput extends ActorInput {
  endpointId: string;
  /** The task queue of the activity that makes deliveries. */
  webhookQueue: string;
}

/**
 * Serves one endpoint as long as deliveries wait for it. The activity that looks also makes the due deliveries. So an
 * endpoint takes one slot of the task queue, however many deliveries wait and however slow it is, and it queues again
 * after each round.
 */
export async function webhookEndpoint(input: WebhookEndpointInput): Promise<void> {
  const { endpointId, webhookQueue, heartbeatTimeoutMs } = input;
  // An endpoint that does not answer is no failure of the activity. Only our own parts make it fail, and they recover.
  const { deliverWebhooks } = proxyActivities<WebhookQueueActivities>({
    taskQueue: webhookQueue,
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: patiently,
  });
  await live(input, { look: () => deliverWebhooks({ endpointId }), steps: {} });
}
