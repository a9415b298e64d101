import { webhookDelivery } from '../../workflows/webhooks/webhookDelivery.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { webhookDeliveryWorkflowId } from '../workflowIds.ts';

export function createWebhookLauncher(kit: LauncherKit) {
  return {
    /** Makes a delivery that is written. */
    startWebhookDelivery: ({ id, spaceId }: { id: string; spaceId: string }) =>
      kit.start(webhookDelivery, {
        workflowId: webhookDeliveryWorkflowId(id),
        args: [id],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'webhookDelivery' },
        ],
        summary: 'Deliver a webhook',
        // A replay is the same delivery.
        mayStartAgain: true,
      }),
    runningWebhookDeliveries: (ids: readonly string[]) => kit.running(ids, webhookDeliveryWorkflowId),
  };
}
