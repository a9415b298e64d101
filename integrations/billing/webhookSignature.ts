import { DomainError } from '../../base/errors.ts';
import type { VerifiedEvent } from './provider.ts';

const toleranceSeconds = 300;

/**
 * Verifies a notification over its raw bytes. One of the secrets (two during a rotation) must have signed it, at most
 * five minutes ago or ahead. Stripe's own check accepts any time in the future. Throws 400.
 */
export async function verifyWebhook(
  raw: Buffer,
  signature: string | undefined,
  secrets: readonly string[],
  nowMs: number,
): Promise<VerifiedEvent> {
  const payload = raw.toString('utf8');
  // Decoding invalid UTF-8 would change the signed text.
  if (signature === undefined || signature.length > 4_096 || !Buffer.from(payload, 'utf8').equals(raw)) throw refused();
  const { webhooks } = await loadStripe();
  const event = secrets
    .map((secret) => tryRead(webhooks, { payload, signature, secret, nowMs }))
    .find((read) => read !== undefined);
  if (event === undefined) throw refused();
  const { id, type } = event as { id?: unknown; type?: unknown };
  if (typeof id !== 'string' || typeof type !== 'string' || id === '' || id.length > 190) {
    throw new DomainError('invalid', 'INVALID_EVENT', 'The notification has no id or no type.');
  }
  return { id, type, payload };
}

function tryRead(
  webhooks: Webhooks,
  { payload, signature, secret, nowMs }: { payload: string; signature: string; secret: string; nowMs: number },
): object | undefined {
  const times = signature.split(',').filter((part) => part.startsWith('t='));
  const ageSeconds = Math.floor(nowMs / 1_000) - Number(times[0]?.slice(2) ?? Number.NaN);
  if (times.length !== 1 || !(Math.abs(ageSeconds) <= toleranceSeconds)) return undefined;
  try {
    return webhooks.constructEvent(payload, signature, secret, toleranceSeconds, undefined, nowMs) as object;
  } catch {
    return undefined;
  }
}

/** Signs as Stripe does, for the development provider. */
export async function signWebhook(
  payload: string,
  secret: string,
  timestamp = Math.floor(Date.now() / 1_000),
): Promise<string> {
  const { webhooks } = await loadStripe();
  return webhooks.generateTestHeaderString({ payload, secret, timestamp });
}

type Webhooks = Awaited<ReturnType<typeof loadStripe>>['webhooks'];

/** Loaded lazily: two hundred modules, which an installation without payments does not need. */
export async function loadStripe() {
  const { default: Stripe } = await import('stripe');
  return Stripe;
}

function refused(): DomainError {
  return new DomainError('invalid', 'INVALID_SIGNATURE', 'The signature of this notification does not hold.');
}
