/**
 * What went wrong, in the terms of the domain. The API maps each kind to one HTTP status (design §6);
 * a model or a launcher never knows about HTTP.
 */
export type DomainErrorKind =
  | 'invalid' // 400: the request's own syntax
  | 'unauthenticated' // 401
  | 'paymentRequired' // 402
  | 'forbidden' // 403: a role inside your own space, or not the thread's owner
  | 'notFound' // 404: absent, or another tenant's
  | 'notAcceptable' // 406: no answer of a type that the client takes
  | 'timeout' // 408: the client was too slow
  | 'conflict' // 409: state, or a key in flight
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
  /** Path of the operation that mends it, by its relation (RFC 8288): `{ rel: 'payment', path: '/api/…' }`. */
  link?: { rel: string; path: string };
  cause?: unknown;
}

/**
 * An expected failure with a stable, upper-case code. `message` is shown to the client as `detail`,
 * so it never holds a secret, SQL, a path or a provider's own text.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly kind: DomainErrorKind;
  readonly code: string;
  readonly errors: FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly link: DomainErrorOptions['link'];

  constructor(kind: DomainErrorKind, code: string, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.code = code;
    this.errors = options.errors;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.link = options.link;
  }
}

/** Makes the errors of an area, each of whose codes has one kind. */
export function errorsOf<Code extends string>(kinds: Readonly<Record<Code, DomainErrorKind>>) {
  return (code: Code, message: string, options: DomainErrorOptions = {}): DomainError =>
    new DomainError(kinds[code], code, message, options);
}

/** The answer for an object that is absent, or another tenant's: the two look the same. */
export function notFound(what: string): DomainError {
  return new DomainError('notFound', 'NOT_FOUND', `There is no such ${what}.`);
}

/** What to throw for an error on the way to an object: which part of the way was not found is not to be seen. */
export function asNotFound(error: unknown, what: string): unknown {
  return error instanceof DomainError && error.kind === 'notFound' ? notFound(what) : error;
}
