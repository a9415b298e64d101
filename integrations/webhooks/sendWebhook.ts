import { DomainError } from '../../base/errors.ts';
import { guardedFetch } from '../egress/fetch.ts';
import type { EgressGuard, EgressOwner } from '../egress/guard.ts';
import { parseRetryAfter } from '../retryAfter.ts';
import { signWebhook } from './standardWebhooks.ts';

export interface OutgoingWebhook {
  url: string;
  /** The same for each attempt. */
  id: string;
  /** JSON. */
  body: string;
  /** All of them sign: two during a rotation. */
  secrets: readonly string[];
}

/** The status of the answer, or why there was none. `error` is null where the receiver has taken it. */
export type WebhookAnswer =
  | { answer: number; error: string | null; retryAfterMs: number | undefined }
  | { answer: null; error: string };

/** For all of it, from the name of the host to the answer's headers. */
const longestMs = 15_000;
/** Statuses whose Retry-After is honoured, for no longer than this. */
const busy = [429, 503];
const longestRetryAfterMs = 86_400_000;

/**
 * Sends a delivery through the egress guard. It follows no redirects, and reads nothing of the answer but its status and
 * Retry-After. Throws what is no fault of the receiver's: that it could not be recorded where this goes.
 */
export async function sendWebhook(
  guard: EgressGuard,
  owner: EgressOwner,
  { url, id, body, secrets }: OutgoingWebhook,
  timeoutMs = longestMs,
): Promise<WebhookAnswer> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signal = AbortSignal.timeout(timeoutMs);
  let ourFault: { error: unknown } | undefined;
  const record: EgressOwner['record'] = (decision) =>
    owner.record(decision).catch((error: unknown) => {
      ourFault = { error };
      throw error;
    });
  await using guarded = guardedFetch(guard, { ...owner, record }, { idleTimeoutMs: longestMs });
  try {
    const response = await guarded.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Atrium-Webhooks',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': secrets.map((secret) => signWebhook(body, { id, timestamp }, secret)).join(' '),
      },
      body,
      redirect: 'manual',
      signal,
    });
    await response.body?.cancel();
    const error = response.ok ? null : 'ANSWER_NOT_2XX';
    return { answer: response.status, error, retryAfterMs: retryAfterOf(response) };
  } catch (error) {
    if (ourFault !== undefined) throw ourFault.error;
    if (error instanceof DomainError) return { answer: null, error: error.code };
    return { answer: null, error: signal.aborted ? 'TIMEOUT' : 'CONNECTION_FAILED' };
  }
}

function retryAfterOf({ status, headers }: Response): number | undefined {
  const value = headers.get('retry-after');
  if (value === null || !busy.includes(status)) return undefined;
  const askedMs = parseRetryAfter({ 'retry-after': value });
  return askedMs === undefined ? undefined : Math.min(askedMs, longestRetryAfterMs);
}
