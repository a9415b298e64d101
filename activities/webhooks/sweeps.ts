import { forgetEndpointDeliveries, forgetWebhookDeliveries } from '../../models/webhooks/deliveries.ts';
import { type OverdueEndpoint, overdueEndpoints } from '../../models/webhooks/rounds.ts';
import { asSwept, graceBefore, purgeOlder, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { WebhookDeps } from './deps.ts';

export function createWebhookSweeps({ config, database, logger, workflows }: WebhookDeps) {
  return {
    /**
     * Starts or signals the workflow of each endpoint with an overdue delivery. Forgets the deliveries of deleted
     * endpoints.
     */
    sweepWebhookDeliveries: (): Promise<SweepReport> => {
      const before = graceBefore(config);
      return sweepEach<OverdueEndpoint>({
        logger,
        before,
        page: (page) => overdueEndpoints(database, page),
        look: async ({ id, endpointId, spaceId, pausedUntil }) => {
          if (endpointId === null) {
            await forgetEndpointDeliveries(database, id);
            return 'ended';
          }
          if (spaceId === null || (pausedUntil !== null && pausedUntil > before)) return 'left';
          return asSwept(await workflows.startWebhookEndpoint({ id, spaceId }), 'reminded');
        },
      });
    },

    /** Removes deliveries that ended long ago. */
    purgeWebhookDeliveries: purgeOlder(config.webhooks.deliveryRetentionMs, (before, onBatch) =>
      forgetWebhookDeliveries(database, before, onBatch),
    ),
  };
}

export const webhookSweeps = {
  rescue: ['sweepWebhookDeliveries'],
  upkeep: ['purgeWebhookDeliveries'],
  quietened: ['sweepWebhookDeliveries'],
} as const satisfies Sweeps<keyof ReturnType<typeof createWebhookSweeps>>;
