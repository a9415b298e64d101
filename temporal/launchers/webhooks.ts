import type { Config } from '../../config/index.ts';
import { webhookEndpoint, webhooksWaitSignal } from '../../workflows/webhooks/webhookEndpoint.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { webhookTaskQueue } from '../taskQueues.ts';
import { webhookEndpointWorkflowId } from '../workflowIds.ts';

export function createWebhookLauncher(kit: LauncherKit, { installation, temporal }: Config) {
  return {
    /** Has an endpoint told what waits for it. */
    startWebhookEndpoint: ({ id, spaceId }: { id: string; spaceId: string }) =>
      kit.startOrSignal(webhookEndpoint, webhooksWaitSignal, {
        workflowId: webhookEndpointWorkflowId(id),
        args: [
          {
            endpointId: id,
            webhookQueue: webhookTaskQueue(installation),
            heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
            maxHistoryEvents: temporal.maxHistoryEvents,
          },
        ],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'webhookEndpoint' },
        ],
        summary: 'Webhooks of an endpoint',
        mayStartAgain: true,
      }),
  };
}
