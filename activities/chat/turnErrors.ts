import { isProviderErrorCode, providerErrorMessage } from '../../integrations/chat/errors.ts';

const details: Record<string, string> = {
  STEP_LIMIT: 'The turn reached its limit of steps. Send another message to go on.',
  TOOL_CALL_LIMIT: 'The turn reached its limit of tool calls. Send another message to go on.',
  TIME_LIMIT:
    'The turn has worked for as long as a turn may. The answer so far is kept. Send another message to go on.',
  TOOL_LOOP: 'The model made the same tool calls again and again, so the turn was ended.',
  CREDITS_EXHAUSTED: 'The space has no credits left for this answer.',
  SPENDING_CAP_REACHED: 'A spending cap of the space is reached. Its owner can raise it.',
  WORKFLOW_LOST: 'The turn was ended by an operator or lost by the workflow server.',
  ANSWER_TOO_LARGE: 'The answer is larger than the database takes. Its beginning is kept.',
  ANSWER_CUT_TOO_OFTEN:
    'The answer was cut off again and again while the model spoke. What it said last is kept. Ask again, or for a shorter one.',
  INTERNAL: 'Something went wrong on our side. The answer so far is kept.',
};

/**
 * The sentence that a client reads for a turn's error code. Written here, so that no provider's text reaches clients.
 */
export function describeTurnError(code: string): string {
  if (isProviderErrorCode(code)) return providerErrorMessage(code);
  return details[code] ?? 'The turn could not be completed.';
}
