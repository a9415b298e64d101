import type { Request } from 'express';
import { DomainError, type DomainErrorKind, type DomainErrorOptions } from '../../base/errors.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { Failure } from '../frame/failures.ts';

export type OpenAiError = AnswerOf<'createChatCompletion', 400>;

/** Codes that programs look for by OpenAI's own name; all other codes are ours. */
const openAiCodes: Record<string, string> = {
  MODEL_UNKNOWN: 'model_not_found',
  CONTEXT_TOO_LONG: 'context_length_exceeded',
};

const types: Record<number, string> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  429: 'rate_limit_error',
};

/** OpenAI's names of the fields that a failure names. */
const ownNames: Record<string, string> = {
  '/modelId': 'model',
  '/effort': 'reasoning_effort',
  '/outboxItemId': 'Idempotency-Key',
};

/** Failures whose usual words name fields that OpenAI's API does not have. */
const ownWords: Record<string, string> = {
  OUTBOX_ITEM_REUSED: 'A different request was already sent with this Idempotency-Key.',
};

const pathUnknown =
  'There is nothing at this path. Of OpenAI’s API, only /v1/chat/completions, /v1/embeddings, /v1/files and ' +
  '/v1/models are available.';

/** A failure in the form that OpenAI's clients read. `req` distinguishes an unknown path from an unknown object. */
export function presentError({ status, code, detail, errors }: Failure, req?: Pick<Request, 'operation'>): OpenAiError {
  const isPathUnknown = code === 'NOT_FOUND' && req !== undefined && req.operation === undefined;
  const message = isPathUnknown ? pathUnknown : (ownWords[code] ?? detail);
  return {
    error: {
      message: message.slice(0, 2_000),
      type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
      param: paramOf(errors?.[0]?.pointer),
      code: openAiCodes[code] ?? code,
    },
  };
}

/** For clients whose base URL lacks `/v1`. */
export function presentErrorOutside(failure: Failure, req: Pick<Request, 'operation'>): OpenAiError {
  const detail = 'There is nothing at this path. Append /v1 to the base URL.';
  return failure.code === 'NOT_FOUND' ? presentError({ ...failure, detail }) : presentError(failure, req);
}

/** `/messages/0/content` is `messages[0].content`. */
function paramOf(pointer: string | undefined): string | null {
  if (pointer === undefined || pointer === '') return null;
  const ownName = ownNames[pointer];
  if (ownName !== undefined) return ownName;
  return pointer
    .replace(/^\//, '')
    .replace(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.');
}

const kinds: Record<string, DomainErrorKind> = {
  CREDITS_EXHAUSTED: 'paymentRequired',
  SPENDING_CAP_REACHED: 'paymentRequired',
  CONTEXT_TOO_LONG: 'invalid',
  PROVIDER_REFUSED: 'invalid',
  PROVIDER_RATE_LIMITED: 'rateLimited',
};

const limits = ['STEP_LIMIT', 'TIME_LIMIT', 'TOOL_CALL_LIMIT', 'TOOL_LOOP', 'ANSWER_TOO_LARGE'];

/** A failed turn, or another failed call of a provider, as the failure of its request. */
export function turnFailure(
  { code, detail }: { code: string; detail: string } = { code: 'INTERNAL', detail: 'The turn has failed.' },
  options: Pick<DomainErrorOptions, 'retryAfterSeconds'> = {},
): DomainError {
  const kind = kinds[code] ?? (limits.includes(code) ? 'unprocessable' : 'upstream');
  return new DomainError(kind, code, detail, options);
}
