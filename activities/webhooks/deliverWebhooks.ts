import { sendWebhook } from '../../integrations/webhooks/sendWebhook.ts';
import { isQuiet, quietLookMs } from '../../models/installation/installation.ts';
import { noteAttempt } from '../../models/webhooks/attempts.ts';
import { disableWhenFull, nextRound, type Round } from '../../models/webhooks/rounds.ts';
import { keepAlive } from '../keepAlive.ts';
import type { WebhookDeps } from './deps.ts';

/** After this time the activity makes room for another endpoint, and queues again. */
const turnMs = 5_000;

/**
 * Makes the due deliveries of an endpoint, and says what comes next. If a worker is killed between sending a delivery
 * and recording it, it is sent again under the same id, which receivers recognize.
 */
export function createDeliverWebhooks(deps: WebhookDeps) {
  const { config, database, egressGuard, egressRules, logger, webhookEndpoints } = deps;
  const { webhooks } = config;

  return async function deliverWebhooks({
    endpointId,
  }: {
    endpointId: string;
  }): Promise<Exclude<Round, { do: 'deliver' }>> {
    using heartbeat = keepAlive();
    if (await isQuiet(database)) return { do: 'watch', waitMs: quietLookMs };
    if (await disableWhenFull(database, endpointId, webhooks.mostWaiting)) {
      logger.warn({ endpointId }, 'Too many deliveries wait for a webhook endpoint, so it was disabled.');
    }
    const endsAt = performance.now() + turnMs;
    while (performance.now() < endsAt && !heartbeat.cancelled.aborted) {
      const round = await nextRound(database, endpointId);
      if (round.do !== 'deliver') return round;
      await deliver(endpointId, round);
    }
    return { do: 'watch', waitMs: 0 };
  };

  async function deliver(
    endpointId: string,
    { spaceId, url, revision, deliveries }: Extract<Round, { do: 'deliver' }>,
  ) {
    const secrets = await webhookEndpoints.secrets({ spaceId, id: endpointId });
    // The endpoint was deleted meanwhile. Nothing is sent unsigned, and the retry notices the deletion.
    if (secrets.length === 0) throw new Error('The webhook endpoint has no secret.');
    const owner = await egressRules.owner(spaceId, 'webhook');
    const told = await Promise.allSettled(
      deliveries.map(async (delivery) => {
        const { id, body } = delivery;
        const end = await sendWebhook(egressGuard, owner, { id, url, body, secrets });
        if (end.error !== null) logger.info({ deliveryId: id, endpointId, ...end }, 'A webhook was not accepted.');
        await noteAttempt(database, { endpointId, revision }, delivery, end, webhooks);
      }),
    );
    // Fail only after all attempts have ended. Otherwise a retry would send them a second time in parallel.
    for (const one of told) if (one.status === 'rejected') throw one.reason;
  }
}
