import { DomainError, type DomainErrorKind } from '../../base/errors.ts';

const kinds: Record<string, DomainErrorKind> = {
  CREDITS_EXHAUSTED: 'paymentRequired',
  SPENDING_CAP_REACHED: 'paymentRequired',
  CONTEXT_TOO_LONG: 'invalid',
  PROVIDER_REFUSED: 'invalid',
};

const limits = ['STEP_LIMIT', 'TIME_LIMIT', 'TOOL_CALL_LIMIT', 'TOOL_LOOP', 'ANSWER_TOO_LARGE'];

/** A turn that has failed, as the failure of the request that asked for it. */
export function turnFailure({ code, detail } = { code: 'INTERNAL', detail: 'The turn has failed.' }): DomainError {
  const kind = kinds[code] ?? (limits.includes(code) ? 'unprocessable' : 'upstream');
  return new DomainError(kind, code, detail);
}
