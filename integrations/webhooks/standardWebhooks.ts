import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';

const toleranceSeconds = 300;
const maxSignatures = 10;
const prefix = 'whsec_';

/**
 * What a delivery may be called; the contract says the same. Without a dot in it, what is signed cannot be split in two
 * ways.
 */
const deliveryIdPattern = /^[A-Za-z0-9_-]{1,200}$/;

/** The headers of a delivery, as it came. */
export interface WebhookHeaders {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/** Whether the headers of a delivery may be right, before its body is read. Throws 401 like `verifyWebhook`. */
export function checkWebhookHeaders({ id = '', timestamp = '', signature = '' }: WebhookHeaders, nowMs: number): void {
  if (id === '') throw refused('webhook-id', 'is missing');
  if (!deliveryIdPattern.test(id)) {
    throw refused('webhook-id', 'has other characters than letters, digits, "_" and "-", or more than 200 of them');
  }
  if (timestamp === '') throw refused('webhook-timestamp', 'is missing');
  if (!/^\d{1,12}$/.test(timestamp)) throw refused('webhook-timestamp', 'is not a number of seconds since 1970');
  const ageSeconds = nowMs / 1_000 - Number(timestamp);
  if (ageSeconds > toleranceSeconds) throw refused('webhook-timestamp', `is more than ${toleranceSeconds} seconds old`);
  if (ageSeconds < -toleranceSeconds) {
    throw refused('webhook-timestamp', `is more than ${toleranceSeconds} seconds ahead of our clock`);
  }
  if (signature === '') throw refused('webhook-signature', 'is missing');
  if (signaturesIn(signature).length === 0) throw refused('webhook-signature', 'has no signature of the version v1');
}

/**
 * Verifies a delivery by Standard Webhooks (https://www.standardwebhooks.com): one of the secrets (two during a
 * rotation) must have signed its id, its time and its raw bytes, at most five minutes ago or ahead. Returns the
 * delivery's id. Throws 401, with the header that is wrong; what would be right it does not say.
 */
export function verifyWebhook(raw: Buffer, headers: WebhookHeaders, secrets: readonly string[], nowMs: number): string {
  checkWebhookHeaders(headers, nowMs);
  const { id = '', timestamp = '', signature = '' } = headers;
  const wanted = secrets.map((secret) => digestOf(raw, { id, timestamp }, secret));
  const isSigned = wanted.some((one) =>
    signaturesIn(signature).some((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (!isSigned) {
    throw refused('webhook-signature', 'is not made of this id, time and body by a secret that holds now');
  }
  return id;
}

function signaturesIn(header: string): Buffer[] {
  return header
    .split(' ', maxSignatures)
    .filter((one) => one.startsWith('v1,'))
    .map((one) => Buffer.from(one.slice(3), 'base64'));
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

function refused(header: string, detail: string): DomainError {
  const message = `The signature of this delivery does not hold: ${header} ${detail}.`;
  return new DomainError('unauthenticated', 'INVALID_SIGNATURE', message, { errors: [{ pointer: header, detail }] });
}
