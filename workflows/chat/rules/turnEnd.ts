import type { AfterTurn } from '../../../activities/chat/endTurn.ts';
import type { AnswerEnd } from '../../../models/chat/turnLog/chunks.ts';
import type { ModelFailure } from './modelRetry.ts';

/** A turn's outcome, in the workflow's terms. */
export type TurnOutcome =
  /** `after` is present if the answer's last commit has ended the turn: the work that is left, or null. */
  | { kind: 'answered'; finishReason: AnswerEnd; after?: AfterTurn | null }
  | { kind: 'stopped' }
  /** The turn had ended before the workflow could do anything: stopped in the queue, or finalized by the sweeper. */
  | { kind: 'alreadyEnded' }
  /** The turn has ended with calls that its client runs. A client of OpenAI's API brings their results to a new turn. */
  | { kind: 'handedOver' }
  | { kind: 'stepLimit' }
  | { kind: 'timeLimit' }
  | { kind: 'failed'; code: string };

/** How the turn's row ends. The text for the client is looked up by code where the answer is written. */
export type TurnEndInput =
  | { status: 'completed'; finishReason: AnswerEnd | 'tool-calls' }
  | { status: 'stopped' }
  | { status: 'failed'; code: string };

/** The end that an outcome leads to; undefined when the turn has already ended. */
export function endOf(outcome: TurnOutcome): TurnEndInput | undefined {
  switch (outcome.kind) {
    case 'answered':
      return { status: 'completed', finishReason: outcome.finishReason };
    case 'stopped':
      return { status: 'stopped' };
    case 'alreadyEnded':
    case 'handedOver':
      return undefined;
    case 'stepLimit':
      return { status: 'failed', code: 'STEP_LIMIT' };
    case 'timeLimit':
      return { status: 'failed', code: 'TIME_LIMIT' };
    case 'failed':
      return { status: 'failed', code: outcome.code };
  }
}

/** A failure's code as a turn error code. */
export function failed(failure: ModelFailure): TurnOutcome {
  return { kind: 'failed', code: failure.code };
}
