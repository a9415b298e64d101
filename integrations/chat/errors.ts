/**
 * What to do about each way a provider can fail. `retryable`: the same call may succeed later. `fallback`: another
 * model may take it now. `message` is written here, so a provider's own text never reaches a client.
 */
const failures = {
  PROVIDER_RATE_LIMITED: { retryable: true, fallback: true, message: 'The model provider is limiting requests.' },
  PROVIDER_OVERLOADED: { retryable: true, fallback: true, message: 'The model provider is overloaded.' },
  PROVIDER_UNAVAILABLE: { retryable: true, fallback: true, message: 'The model provider cannot be reached.' },
  PROVIDER_FAILED: { retryable: true, fallback: true, message: 'The model provider answered with an error.' },
  PROVIDER_CUT: {
    retryable: true,
    fallback: true,
    message: 'The model provider ended the answer before it was complete.',
  },
  PROVIDER_STALLED: { retryable: true, fallback: true, message: 'The model provider stopped sending.' },
  PROVIDER_BAD_RESPONSE: { retryable: true, fallback: true, message: 'The model provider sent something unreadable.' },
  PROVIDER_EMPTY_ANSWER: { retryable: true, fallback: true, message: 'The model answered with nothing.' },
  PROVIDER_QUOTA: { retryable: false, fallback: true, message: 'The account with the model provider is used up.' },
  PROVIDER_AUTH: { retryable: false, fallback: true, message: 'The model provider refused the configured key.' },
  PROVIDER_MODEL_UNKNOWN: {
    retryable: false,
    fallback: true,
    message: 'The model provider does not offer this model.',
  },
  PROVIDER_REFUSED: { retryable: false, fallback: false, message: 'The model provider refused the request.' },
  CONTEXT_TOO_LONG: { retryable: false, fallback: false, message: 'The conversation is too long for this model.' },
} as const;

export type ProviderErrorCode = keyof typeof failures;

/** Whether a turn's error code is a provider error. */
export function isProviderErrorCode(code: string): code is ProviderErrorCode {
  return Object.hasOwn(failures, code);
}

/** The message for a code, for callers that kept only the code. */
export function providerErrorMessage(code: ProviderErrorCode): string {
  return failures[code].message;
}

export interface ProviderErrorOptions {
  /** What the provider asked for with Retry-After. */
  retryAfterMs?: number;
  /** For the log only. */
  cause?: unknown;
}

/** A model call that failed. Its `code` is stable and its `message` may be shown to clients; `cause` is for the log. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly code: ProviderErrorCode;
  readonly retryable: boolean;
  readonly fallback: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ProviderErrorCode, options: ProviderErrorOptions = {}) {
    super(failures[code].message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = failures[code].retryable;
    this.fallback = failures[code].fallback;
    this.retryAfterMs = options.retryAfterMs;
  }
}
