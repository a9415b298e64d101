import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';

// A receiver that does not answer is no failure of the activity: when to try again is in the delivery's row. What fails
// is the database, which comes back.
const { deliverWebhook } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '2 seconds', maximumInterval: '1 minute' },
});

/** Tells one endpoint of one event, with as many attempts as its row allows. */
export async function webhookDelivery(deliveryId: string): Promise<void> {
  for (;;) {
    const waitMs = await deliverWebhook(deliveryId);
    if (waitMs === null) return;
    await sleep(waitMs);
  }
}
