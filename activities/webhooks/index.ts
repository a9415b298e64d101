import { createDeliverWebhooks } from './deliverWebhooks.ts';
import type { WebhookDeps } from './deps.ts';

/** What the queue of webhooks does: work that waits for endpoints of other people. */
export function createWebhookQueueActivities(deps: WebhookDeps) {
  return { deliverWebhooks: createDeliverWebhooks(deps) };
}
