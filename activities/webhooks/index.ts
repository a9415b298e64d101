import { createDeliverWebhooks } from './deliverWebhooks.ts';
import type { WebhookDeps } from './deps.ts';
import { createWebhookSweeps, webhookSweeps } from './sweeps.ts';

/** What the queue of webhooks does: work that waits for endpoints of other people. */
export function createWebhookQueueActivities(deps: WebhookDeps) {
  return { deliverWebhooks: createDeliverWebhooks(deps) };
}

export const webhooks = { create: createWebhookSweeps, sweeps: webhookSweeps };
