import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider';
import { parseRetryAfter } from '../retryAfter.ts';
import { ProviderError, type ProviderErrorCode } from './errors.ts';

/** The fields of an error that the three SDKs and the providers fill. */
interface ErrorFacts {
  status: number | undefined;
  /** The provider's own text: only matched against, never shown. */
  words: string;
  headers: Record<string, string> | undefined;
}

const contextTooLong =
  /context_length_exceeded|context window|maximum context|prompt is too long|input is too long|too many input tokens/i;
const quotaUsedUp = /insufficient_quota|billing|credit balance|quota exceeded for the account/i;
const networkCodes =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR|HPE_|EPROTO|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)/;

/** Providers' names for an error within a stream, which has no HTTP status. */
const statusByName: Record<string, number> = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  api_error: 500,
  server_error: 500,
  internal_server_error: 500,
  timeout_error: 504,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  invalid_request_error: 400,
  context_length_exceeded: 400,
};

/**
 * Converts a provider's failure into a {@link ProviderError}. `answered` distinguishes a provider that was cut off
 * while it answered from an unreachable one.
 */
export function toProviderError(error: unknown, answered: boolean): ProviderError {
  if (error instanceof ProviderError) return error;
  if (InvalidResponseDataError.isInstance(error) && error.data === undefined) {
    // The OpenAI-compatible SDK's error for a stream without a finish reason.
    return new ProviderError('PROVIDER_CUT', { cause: error });
  }
  if (isUnreadable(error)) return new ProviderError('PROVIDER_BAD_RESPONSE', { cause: error });

  const facts = factsOf(error);
  if (facts.status !== undefined && facts.status >= 300) {
    return new ProviderError(codeOf(facts.status, facts.words), {
      retryAfterMs: parseRetryAfter(facts.headers),
      cause: error,
    });
  }
  if (isNetworkFailure(error)) {
    return new ProviderError(answered ? 'PROVIDER_CUT' : 'PROVIDER_UNAVAILABLE', { cause: error });
  }
  return new ProviderError('PROVIDER_BAD_RESPONSE', { cause: error });
}

function codeOf(status: number, words: string): ProviderErrorCode {
  if (status < 500 && contextTooLong.test(words)) return 'CONTEXT_TOO_LONG';
  if (status === 402 || (status < 500 && quotaUsedUp.test(words))) return 'PROVIDER_QUOTA';
  if (status === 401 || status === 403) return 'PROVIDER_AUTH';
  if (status === 404) return 'PROVIDER_MODEL_UNKNOWN';
  if (status === 429) return 'PROVIDER_RATE_LIMITED';
  if (status === 529 || (status === 503 && /overloaded/i.test(words))) return 'PROVIDER_OVERLOADED';
  if (status === 408 || status === 409 || status === 425 || status >= 500) return 'PROVIDER_FAILED';
  return 'PROVIDER_REFUSED';
}

function isUnreadable(error: unknown): boolean {
  return (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    InvalidResponseDataError.isInstance(error)
  );
}

function factsOf(error: unknown): ErrorFacts {
  if (APICallError.isInstance(error)) {
    return {
      status: error.statusCode,
      words: `${error.message} ${error.responseBody ?? ''}`,
      headers: error.responseHeaders,
    };
  }
  if (typeof error !== 'object' || error === null)
    return { status: undefined, words: String(error), headers: undefined };
  const { statusCode, code, type, message } = error as Record<'statusCode' | 'code' | 'type' | 'message', unknown>;
  const named = statusByName[String(code)] ?? statusByName[String(type)];
  const numeric = [statusCode, code].map(Number).find((value) => value >= 400 && value < 600);
  return { status: numeric ?? named, words: [type, code, message].join(' '), headers: undefined };
}

/** Searches the chain of causes, where undici and the SDKs keep the socket's own error. */
function isNetworkFailure(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < 8 && typeof current === 'object' && current !== null; depth++) {
    const { code, message, cause } = current as Record<'code' | 'message' | 'cause', unknown>;
    if (typeof code === 'string' && networkCodes.test(code)) return true;
    if (message === 'terminated' || message === 'fetch failed') return true;
    current = cause;
  }
  return false;
}
