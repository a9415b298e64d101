import { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client';
import { DomainError } from '../../base/errors.ts';

const retryAfterSeconds = 10;

/** An issuer's failure as a domain error. */
export function normaliseIssuerError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  // The person or the issuer declined.
  if (error instanceof AuthorizationResponseError) return issuerRefused(error);
  if (error instanceof ResponseBodyError) return failed(error);
  if (isTransport(error)) {
    return new DomainError(
      'unavailable',
      'ISSUER_UNREACHABLE',
      'The sign-in service does not answer. Try again soon.',
      { retryAfterSeconds, cause: error },
    );
  }
  return failed(error);
}

export function issuerRefused(cause?: unknown): DomainError {
  return new DomainError('forbidden', 'SIGN_IN_REFUSED', 'The sign-in service did not let you through.', { cause });
}

function failed(cause: unknown): DomainError {
  return new DomainError('upstream', 'ISSUER_FAILED', 'The sign-in service gave an answer that is not right.', {
    cause,
  });
}

/** Failures that may be over soon: no answer, a late one, or 5xx. */
function isTransport(error: unknown): boolean {
  if (error instanceof TypeError) return true;
  if (!(error instanceof ClientError)) return false;
  const { cause } = error;
  return error.code === 'OAUTH_TIMEOUT' || (cause instanceof Response && cause.status >= 500);
}
