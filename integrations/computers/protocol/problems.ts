import { DomainError, type DomainErrorKind } from '../../../base/errors.ts';
import { statusOf } from '../../http/statuses.ts';

const kindOf = new Map(Object.entries(statusOf).map(([kind, status]) => [status, kind as DomainErrorKind]));

/** A refusal, as it goes over a holder’s socket. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
  retryAfter?: number;
}

export function problemFrom({ kind, code, message, retryAfterSeconds }: DomainError): Problem {
  return {
    status: statusOf[kind],
    code,
    detail: message,
    ...(retryAfterSeconds !== undefined && { retryAfter: retryAfterSeconds }),
  };
}

/** The refusal that a body says; what is none becomes 502, as does 401: our token was refused, not the caller’s. */
export function problemOf(status: number, body: string): DomainError {
  try {
    const { code, detail, retryAfter } = JSON.parse(body) as Problem;
    const kind = kindOf.get(status);
    if (kind !== undefined && kind !== 'unauthenticated' && typeof code === 'string' && typeof detail === 'string') {
      return new DomainError(kind, code, detail, retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter });
    }
  } catch {
    // As if it had said nothing.
  }
  return new DomainError('upstream', 'HOST_FAILED', 'The computer’s host has failed.');
}
