import { createHash } from 'node:crypto';
import type { Automation } from '../../models/automations/automation.ts';
import type { AutomationDeps } from './deps.ts';

const ttlSeconds = 86_400;

/** Tells the devices of its owner, once, that an automation has paused itself. The automation's own row says so too. */
export async function tellPaused(deps: AutomationDeps, automation: Automation): Promise<void> {
  const { id, spaceId, threadId, userId, name, pause } = automation;
  if (pause === null || (await deps.members.access(spaceId, userId)) === undefined) return;
  const { subscriptions } = deps.push;
  const payload = JSON.stringify({
    ...{ type: 'automation.paused', automationId: id, threadId, spaceId, priority: 'default', title: name },
    options: { body: `Paused: ${pause.detail}`, tag: id, silent: false, renotify: false, requireInteraction: false },
  });
  const topic = createHash('sha256').update(id).digest('base64url').slice(0, 32);
  const ids = await subscriptions.idsOf(userId);
  await Promise.allSettled(
    ids.map(async (subscriptionId) => {
      const target = await subscriptions.open(userId, subscriptionId);
      if (target === undefined) return;
      const outcome = await deps.pushSender({ target, payload, urgency: 'normal', topic, ttlSeconds });
      if (outcome === 'sent') await subscriptions.markPushed(subscriptionId);
      if (outcome === 'gone') await subscriptions.forget(subscriptionId);
    }),
  );
}
