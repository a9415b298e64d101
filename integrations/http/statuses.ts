import type { DomainErrorKind } from '../../base/errors.ts';

/** The HTTP status of each kind of refusal: the API's to its clients, and a holder's to who asks it. */
export const statusOf: Record<DomainErrorKind, number> = {
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
