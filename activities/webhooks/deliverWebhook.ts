import { sendWebhook } from '../../integrations/webhooks/sendWebhook.ts';
import { deliveryToTry, noteAttempt } from '../../models/webhooks/attempts.ts';
import type { WebhookDeps } from './deps.ts';

/**
 * Makes the attempt of a delivery that is due, and returns the milliseconds until the next one; null when it has ended.
 * When killed between sending and recording it, it sends again under the same id, by which receivers know it.
 */
export function createDeliverWebhook(deps: WebhookDeps) {
  const { config, database, egressGuard, egressRules, logger, webhookEndpoints } = deps;
  return async function deliverWebhook(deliveryId: string): Promise<number | null> {
    const delivery = await deliveryToTry(database, deliveryId);
    if (delivery === undefined) return null;
    if (delivery.waitMs > 0) return delivery.waitMs;
    const { id, spaceId, endpointId, url, body } = delivery;
    const secrets = await webhookEndpoints.secrets({ spaceId, id: endpointId });
    const owner = await egressRules.owner(spaceId, 'webhook');
    const end = await sendWebhook(egressGuard, owner, { id, url, body, secrets });
    if (end.error !== null) logger.info({ deliveryId, endpointId, ...end }, 'A webhook was not taken.');
    return (await noteAttempt(database, delivery, end, config.webhooks)) ?? null;
  };
}
