import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';

/** `X-Hub-Signature-256` over the raw bytes, by one of the secrets (two during a rotation). Throws 400. */
export function verifyHubSignature(raw: Buffer, signature: string | undefined, secrets: readonly string[]): void {
  const given = Buffer.from(signature ?? '', 'latin1');
  const isSigned = secrets
    .map((secret) => Buffer.from(signHub(raw, secret), 'latin1'))
    .some((wanted) => wanted.length === given.length && timingSafeEqual(wanted, given));
  if (!isSigned) {
    throw new DomainError('invalid', 'INVALID_SIGNATURE', 'The signature of this notification does not hold.');
  }
}

/** Signs as GitHub does. */
export function signHub(raw: string | Buffer, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(raw).digest('hex')}`;
}
