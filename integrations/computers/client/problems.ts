import { DomainError, type DomainErrorKind } from '../../../models/errors.ts';

const statusOf: Record<DomainErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  paymentRequired: 402,
  forbidden: 403,
  notFound: 404,
  notAcceptable: 406,
  timeout: 408,
  conflict: 409,
  gone: 410,
  preconditionFailed: 412,
  tooLarge: 413,
  unsupportedMediaType: 415,
  rangeNotSatisfiable: 416,
  unprocessable: 422,
  rateLimited: 429,
  upstream: 502,
  unavailable: 503,
  upstreamTimeout: 504,
};
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
