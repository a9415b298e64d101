import { createDeliverWebhook } from './deliverWebhook.ts';
import type { WebhookDeps } from './deps.ts';
import { createWebhookSweeps } from './sweeps.ts';

export function createWebhookActivities(deps: WebhookDeps) {
  return { deliverWebhook: createDeliverWebhook(deps), ...createWebhookSweeps(deps) };
}
