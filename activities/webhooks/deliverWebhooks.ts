import { sendWebhook } from '../../integrations/webhooks/sendWebhook.ts';
import { isQuiet, quietLookMs } from '../../models/installation/installation.ts';
import { noteAttempt } from '../../models/webhooks/attempts.ts';
import { disableWhenFull, nextRound, type Round } from '../../models/webhooks/rounds.ts';
import { keepAlive } from '../keepAlive.ts';
import type { WebhookDeps } from './deps.ts';

/** After this it makes room for another endpoint, and takes its turn again. */
const turnMs = 5_000;

/**
 * Makes the deliveries of an endpoint that are due, and says what comes next. A worker that is killed between sending one
 * and recording it sends it again under the same id, by which receivers know it.
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
      logger.warn({ endpointId }, 'More deliveries wait for a webhook endpoint than may: it is disabled.');
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
    // Deleted in between: what follows sees that, and nothing leaves unsigned.
    if (secrets.length === 0) throw new Error('The webhook endpoint has no secret.');
    const owner = await egressRules.owner(spaceId, 'webhook');
    const told = await Promise.allSettled(
      deliveries.map(async (delivery) => {
        const { id, body } = delivery;
        const end = await sendWebhook(egressGuard, owner, { id, url, body, secrets });
        if (end.error !== null) logger.info({ deliveryId: id, endpointId, ...end }, 'A webhook was not taken.');
        await noteAttempt(database, { endpointId, revision }, delivery, end, webhooks);
      }),
    );
    // Only when none is under way any more: who tries again would send it beside this.
    for (const one of told) if (one.status === 'rejected') throw one.reason;
  }
}
