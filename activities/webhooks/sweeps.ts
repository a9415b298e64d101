import { forgetEndpointDeliveries, forgetWebhookDeliveries } from '../../models/webhooks/deliveries.ts';
import { type OverdueEndpoint, overdueEndpoints } from '../../models/webhooks/rounds.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { WebhookDeps } from './deps.ts';

export function createWebhookSweeps({ config, database, logger, workflows }: WebhookDeps) {
  return {
    /** Starts or tells the workflow of each endpoint for which a delivery is overdue; one that is deleted has none. */
    sweepWebhookDeliveries: (): Promise<SweepReport> => {
      const before = new Date(Date.now() - config.sweeper.graceSeconds * 1_000);
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

    /** Leaves nothing of deliveries that were made long ago. */
    async purgeWebhookDeliveries(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.webhooks.deliveryRetentionMs);
      return forgetWebhookDeliveries(database, old, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const webhookSweeps = {
  rescue: ['sweepWebhookDeliveries'],
  upkeep: ['purgeWebhookDeliveries'],
} as const satisfies Sweeps<keyof ReturnType<typeof createWebhookSweeps>>;
