import { firstOf } from '../../base/text.ts';
import type { Message } from '../../models/chat/message.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { NotificationPriority, Turn } from '../../models/chat/turn.ts';

const maxBodyLength = 200;

/**
 * How a device shows a notification: spec.md's priorities in the terms of the Notifications API. iOS knows none of
 * them.
 */
const manners: Record<NotificationPriority, object> = {
  low: { silent: true, renotify: false, requireInteraction: false },
  default: { silent: false, renotify: false, requireInteraction: false },
  high: { silent: false, renotify: true, requireInteraction: true, vibrate: [200, 100, 200] },
};

/** How hard a push service tries to wake the device (RFC 8030 §5.3). */
export function urgencyOf(priority: NotificationPriority): 'low' | 'normal' | 'high' {
  return priority === 'default' ? 'normal' : priority;
}

/** What a client's service worker receives, and can pass to `showNotification` as it is (docs/notifications.md). */
export function payloadOf(turn: Turn, thread: Thread, answer: Message | null): string {
  return JSON.stringify({
    type: `turn.${turn.status}`,
    turnId: turn.id,
    threadId: turn.threadId,
    spaceId: turn.spaceId,
    priority: turn.notificationPriority,
    title: thread.title ?? 'Atrium',
    options: { body: bodyOf(turn, answer), tag: turn.id, ...manners[turn.notificationPriority] },
  });
}

function bodyOf(turn: Turn, answer: Message | null): string {
  if (turn.status === 'waiting') return 'Your input is needed.';
  if (turn.status === 'failed') return turn.errorDetail ?? 'The turn could not be completed.';
  const said = (answer?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  const text = said.replace(/\s+/g, ' ').trim();
  return text.length <= maxBodyLength ? text || 'Done.' : `${firstOf(text, maxBodyLength).toWellFormed()}…`;
}
