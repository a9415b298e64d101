import { webhookEndpoint } from '../../workflows/webhooks/webhookEndpoint.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { webhookTaskQueue } from '../taskQueues.ts';

export function createWebhookLauncher({ config, kit }: LauncherParts) {
  const endpoints = kit.actor(webhookEndpoint, {
    inputOf: (endpointId, limits) => ({ endpointId, webhookQueue: webhookTaskQueue(config.installation), ...limits }),
    summary: 'Webhooks of an endpoint',
  });
  return { startWebhookEndpoint: endpoints.tell };
}
