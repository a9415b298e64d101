import { createDeliverWebhooks } from './deliverWebhooks.ts';
import type { WebhookDeps } from './deps.ts';
import { createWebhookSweeps, webhookSweeps } from './sweeps.ts';

/** Activities of the queue for webhooks, which wait for other people's endpoints. */
export function createWebhookQueueActivities(deps: WebhookDeps) {
  return { deliverWebhooks: createDeliverWebhooks(deps) };
}

export const webhooks = { create: createWebhookSweeps, sweeps: webhookSweeps };
