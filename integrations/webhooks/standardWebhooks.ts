import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../models/errors.ts';

const toleranceSeconds = 300;
const maxSignatures = 10;
const prefix = 'whsec_';

/** The headers of a delivery, as it came. */
export interface WebhookHeaders {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/**
 * Verifies a delivery by Standard Webhooks (https://www.standardwebhooks.com): one of the secrets (two during a
 * rotation) must have signed its id, its time and its raw bytes, at most five minutes ago or ahead. Returns the
 * delivery's id. Throws 401.
 */
export function verifyWebhook(
  raw: Buffer,
  { id = '', timestamp = '', signature = '' }: WebhookHeaders,
  secrets: readonly string[],
  nowMs: number,
): string {
  // Without a dot in the id, what is signed cannot be split in two ways.
  if (!/^[\w-]{1,200}$/.test(id) || !/^\d{1,12}$/.test(timestamp)) throw refused();
  if (Math.abs(nowMs / 1_000 - Number(timestamp)) > toleranceSeconds) throw refused();
  const given = signature
    .split(' ', maxSignatures)
    .filter((one) => one.startsWith('v1,'))
    .map((one) => Buffer.from(one.slice(3), 'base64'));
  const wanted = secrets.map((secret) => digestOf(raw, { id, timestamp }, secret));
  const isSigned = wanted.some((one) =>
    given.some((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (!isSigned) throw refused();
  return id;
}

/** Signs a delivery, as its sender does. */
export function signWebhook(
  raw: string | Buffer,
  { id, timestamp }: { id: string; timestamp: string },
  secret: string,
): string {
  return `v1,${digestOf(raw, { id, timestamp }, secret).toString('base64')}`;
}

function digestOf(raw: string | Buffer, { id, timestamp }: { id: string; timestamp: string }, secret: string): Buffer {
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(raw).digest();
}

function refused(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_SIGNATURE', 'The signature of this delivery does not hold.');
}
