import { DomainError, notFound } from '../../base/errors.ts';
import { findAutomation } from '../../models/automations/automation.ts';
import { keepDelivery } from '../../models/automations/runs.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { verifyDelivery } from '../frame/verifyDelivery.ts';

const maxBodyLength = 262_144;

/** Deliveries to automations: verified over the raw bytes, stored once, then answered. */
export function automationDeliveryRoutes(deps: RouteDeps) {
  const { automationSecrets, config, database, launcher } = deps;
  const router = createRouter();

  router.post('/api/webhooks/automations/:automationId', async (req, res) => {
    const { automationId } = pathOf<'receiveAutomationDelivery'>(req);
    const automation = await findAutomation(database, automationId);
    if (automation === undefined) throw notFound('automation');
    const id = await verifyDelivery(deps, req, res, {
      body: () => req.rawBody ?? Buffer.alloc(0),
      secrets: () => automationSecrets.of(automationId),
    });
    // One line of JSON with everything escaped, so that no text can imitate the end of the data.
    const body = JSON.stringify(req.body);
    if (body.length > maxBodyLength) {
      throw new DomainError('tooLarge', 'DELIVERY_TOO_LARGE', 'The delivery is too large. The maximum is 256 KiB.');
    }
    const runId = await keepDelivery(database, automationId, { id, body }, config.automations);
    void launcher.startAutomationRun({ id: runId, spaceId: automation.spaceId });
    answer<'receiveAutomationDelivery'>(res, 200, { ok: true, runId });
  });

  return router;
}
