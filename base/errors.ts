/**
 * The kind of a failure, in the terms of the domain. The API maps each kind to one HTTP status. Models and launchers
 * know nothing of HTTP.
 */
export type DomainErrorKind =
  | 'invalid' // 400: the request's own syntax
  | 'unauthenticated' // 401
  | 'paymentRequired' // 402
  | 'forbidden' // 403: a role too low in your own space, or not the thread's owner
  | 'notFound' // 404: absent, or another tenant's
  | 'notAcceptable' // 406: the client accepts no type of the answer
  | 'timeout' // 408: the client was too slow
  | 'conflict' // 409: wrong state, or an idempotency key in flight
  | 'gone' // 410: expired
  | 'preconditionFailed' // 412: If-Match names another version
  | 'tooLarge' // 413
  | 'unsupportedMediaType' // 415
  | 'rangeNotSatisfiable' // 416
  | 'unprocessable' // 422: well-formed, but refused
  | 'rateLimited' // 429
  | 'upstream' // 502: an upstream answered wrongly
  | 'unavailable' // 503: an upstream is down
  | 'upstreamTimeout'; // 504

export interface FieldError {
  /** JSON pointer into the request body, or the parameter's name. */
  pointer: string;
  detail: string;
}

export interface DomainErrorOptions {
  errors?: FieldError[];
  retryAfterSeconds?: number;
  /** Path of the operation that resolves it, with its relation (RFC 8288): `{ rel: 'payment', path: '/api/…' }`. */
  link?: { rel: string; path: string };
  /** For a refusal because of a limit: the limit, and how much of it is used. */
  quota?: { limit: number; used: number };
  cause?: unknown;
}

/**
 * An expected failure with a stable, upper-case code. The client sees `message` as `detail`, so it never contains a
 * secret, SQL, a file path or a provider's own text.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly kind: DomainErrorKind;
  readonly code: string;
  readonly errors: FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly link: DomainErrorOptions['link'];
  readonly quota: DomainErrorOptions['quota'];

  constructor(kind: DomainErrorKind, code: string, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.code = code;
    this.errors = options.errors;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.link = options.link;
    this.quota = options.quota;
  }
}

/** Returns a function that creates an area's errors. Each code has one kind. */
export function errorsOf<Code extends string>(kinds: Readonly<Record<Code, DomainErrorKind>>) {
  return (code: Code, message: string, options: DomainErrorOptions = {}): DomainError =>
    new DomainError(kinds[code], code, message, options);
}

/** The error for an object that is absent or belongs to another tenant: the two look the same. */
export function notFound(what: string): DomainError {
  return new DomainError('notFound', 'NOT_FOUND', `There is no such ${what}.`);
}

/** Turns any not-found error on the way to an object into one for the object, so that the missing part stays hidden. */
export function asNotFound(error: unknown, what: string): unknown {
  return error instanceof DomainError && error.kind === 'notFound' ? notFound(what) : error;
}
