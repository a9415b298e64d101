import type { Logger } from '../../telemetry/logger.ts';
import { onFirstUse } from '../onFirstUse.ts';

/** The fetch for pushes. It must be guarded, since a user chooses the address, and it must not follow redirects. */
export type PushFetch = (
  url: string,
  init: { method: 'POST'; headers: Record<string, string>; body: Buffer; redirect: 'manual'; signal: AbortSignal },
) => Promise<{ status: number; headers: { get(name: string): string | null } }>;

export interface Push {
  target: { endpoint: string; keys: { p256dh: string; auth: string } };
  /** JSON text, encrypted for the device (RFC 8291). */
  payload: string;
  urgency: 'low' | 'normal' | 'high';
  /** Replaces an earlier, undelivered push of the same topic: at most 32 characters of base64url. */
  topic: string;
  ttlSeconds: number;
}

/**
 * `gone`: the subscription has ended. `later`: the service asks for a retry. `refused`: it will never accept this push.
 */
export type PushOutcome = 'sent' | 'gone' | 'refused' | { later: true; retryAfterSeconds: number | undefined };

export type PushSender = (push: Push) => Promise<PushOutcome>;

const timeoutMs = 10_000;

/** Sends web pushes in the name of the installation with these keys. */
export function createPushSender(options: {
  keys: () => Promise<{ publicKey: string; privateKey: string }>;
  /** The contact for push services: an https URL or a mailto address. */
  subject: string;
  fetch: PushFetch;
  logger: Logger;
}): PushSender {
  const { keys, subject, logger } = options;
  const loadLibrary = onFirstUse(() => import('web-push'));
  return async ({ target, payload, urgency, topic, ttlSeconds }) => {
    const { default: webPush } = await loadLibrary();
    const details = webPush.generateRequestDetails(target, payload, {
      vapidDetails: { subject, ...(await keys()) },
      TTL: ttlSeconds,
      urgency,
      topic,
      contentEncoding: 'aes128gcm',
    });
    const headers = Object.fromEntries(
      Object.entries(details.headers as Record<string, string | number>).map(([name, value]) => [name, String(value)]),
    );
    const response = await options.fetch(target.endpoint, {
      method: 'POST',
      headers,
      body: details.body as Buffer,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status } = response;
    if (status >= 200 && status < 300) return 'sent';
    if (status === 404 || status === 410) return 'gone';
    if (status === 429 || status >= 500) return { later: true, retryAfterSeconds: secondsOf(response.headers) };
    logger.warn({ status, service: new URL(target.endpoint).host }, 'A push service has refused a push.');
    return 'refused';
  };
}

function secondsOf(headers: { get(name: string): string | null }): number | undefined {
  const value = headers.get('retry-after');
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) : undefined;
}
