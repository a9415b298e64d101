import { forgetWebhookDeliveries, type PendingDelivery, pendingDeliveries } from '../../models/webhooks/deliveries.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, sweepEach } from '../sweepEach.ts';
import type { WebhookDeps } from './deps.ts';

export function createWebhookSweeps({ config, database, logger, workflows }: WebhookDeps) {
  return {
    /** Starts the workflow of each delivery whose attempt is due and that has none. */
    sweepWebhookDeliveries: (): Promise<SweepReport> =>
      sweepEach<PendingDelivery>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => pendingDeliveries(database, page),
        well: (rows) => workflows.runningWebhookDeliveries(rows.map(({ id }) => id)),
        look: async (row, isWell) => (isWell ? 'left' : asSwept(await workflows.startWebhookDelivery(row), 'started')),
      }),

    /** Leaves nothing of deliveries that were made long ago. */
    async purgeWebhookDeliveries(): Promise<number> {
      using _heartbeat = keepAlive();
      return forgetWebhookDeliveries(database, new Date(Date.now() - config.webhooks.deliveryRetentionMs));
    },
  };
}

export const webhookSweeps = [
  'sweepWebhookDeliveries',
  'purgeWebhookDeliveries',
] as const satisfies readonly (keyof ReturnType<typeof createWebhookSweeps>)[];
