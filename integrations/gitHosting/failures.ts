import { DomainError, type DomainErrorKind, errorsOf } from '../../base/errors.ts';

/** The failures of a hosting provider, by their stable codes. */
const hostingFailures = {
  GIT_HOSTING_NOT_CONFIGURED: 'unprocessable',
  /** The provider refuses our App's key: it is another App's, or a clock is wrong. */
  GIT_HOSTING_KEY_REFUSED: 'upstream',
  /** The provider accepts the App's key, and refuses the request. */
  GIT_HOSTING_REFUSED: 'upstream',
  /** The object does not exist, or not for this App. */
  GIT_HOSTING_NOT_FOUND: 'unprocessable',
  /** The code with which a person came back is invalid or expired. */
  GIT_HOSTING_CODE_REFUSED: 'forbidden',
  GIT_HOSTING_BUSY: 'rateLimited',
  GIT_HOSTING_UNAVAILABLE: 'unavailable',
  GIT_HOSTING_TOO_SLOW: 'upstreamTimeout',
} as const satisfies Record<string, DomainErrorKind>;

export type HostingFailure = keyof typeof hostingFailures;

export const hostingError = errorsOf(hostingFailures);

const longestRetryAfterSeconds = 3_600;
const retrySoonSeconds = 10;

interface Answered {
  status: number;
  response?: { headers: Record<string, string | number | undefined> };
  cause?: unknown;
}

/**
 * Translates a failed request of the library. The original is never passed on as a cause: it contains our key, or an
 * answer with a token.
 */
export function hostingFailure(error: unknown, now = Date.now()): DomainError {
  if (error instanceof DomainError) return error;
  const { name, cause } = error as { name?: string; cause?: unknown };
  if ([name, (cause as Error | undefined)?.name].some((said) => said === 'TimeoutError' || said === 'AbortError')) {
    return hostingError('GIT_HOSTING_TOO_SLOW', 'GitHub has not answered in time.');
  }
  if (!isAnswered(error)) return misanswered();
  const { status, response } = error;
  if (response === undefined || status >= 500) {
    const options = { retryAfterSeconds: retryAfter(response?.headers, now) ?? retrySoonSeconds };
    const said = response === undefined ? 'cannot be reached' : `answers ${status}`;
    return hostingError('GIT_HOSTING_UNAVAILABLE', `GitHub ${said}. Try again soon.`, options);
  }
  const { headers } = response;
  // A limit is 429, or 403 with one of these.
  const wait = retryAfter(headers, now);
  if (status === 429 || (status === 403 && wait !== undefined)) {
    const retryAfterSeconds = wait ?? retrySoonSeconds;
    return hostingError('GIT_HOSTING_BUSY', 'GitHub wants fewer requests for a while.', { retryAfterSeconds });
  }
  switch (status) {
    case 401:
      return hostingError('GIT_HOSTING_KEY_REFUSED', `GitHub does not take the App’s key${skew(headers, now)}.`);
    case 403:
      return hostingError('GIT_HOSTING_REFUSED', 'GitHub does not let the App do this; it may be suspended there.');
    case 404:
    case 410:
    case 422:
      return hostingError('GIT_HOSTING_NOT_FOUND', 'GitHub has no such thing, or not for this App.');
    default:
      return hostingError('GIT_HOSTING_REFUSED', `GitHub answers ${status}.`);
  }
}

/** The failure for an answer that is cut or malformed. */
export function misanswered(): DomainError {
  return hostingError('GIT_HOSTING_UNAVAILABLE', 'GitHub gave an answer that is not right. Try again soon.');
}

function isAnswered(error: unknown): error is Answered {
  return error instanceof Error && 'status' in error && typeof error.status === 'number';
}

/** In seconds; undefined if the answer names no limit. */
function retryAfter(headers: NonNullable<Answered['response']>['headers'] = {}, now: number): number | undefined {
  const said = Number(headers['retry-after']);
  const resetAt = headers['x-ratelimit-remaining'] === '0' ? Number(headers['x-ratelimit-reset']) : Number.NaN;
  const seconds = Number.isFinite(said) ? said : Math.ceil(resetAt - now / 1_000);
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 1), longestRetryAfterSeconds) : undefined;
}

const smallSkewMs = 30_000;

/** A wrong clock is the usual reason for a refused key, and the hardest to guess. */
function skew(headers: NonNullable<Answered['response']>['headers'], now: number): string {
  const apart = now - Date.parse(String(headers.date));
  if (!(Math.abs(apart) > smallSkewMs)) return '';
  return `: this machine’s clock is ${Math.round(Math.abs(apart) / 1_000)} s ${apart > 0 ? 'ahead' : 'behind'}`;
}
