import type { Transaction } from 'sequelize';
import type { ModelPart, TokenUsage } from '../../integrations/llm/modelCall.ts';
import type { OutOfCredits } from '../../models/chat/modelCall.ts';
import type { Turn } from '../../models/chat/turn.ts';

export interface MeteredCall {
  turn: Turn;
  step: number;
  modelId: string;
}

/** About how many tokens a call has. */
export interface ExpectedSize {
  inputTokens: number;
  /** What of the input is the system prompt and the tools; absent for what is asked beside a turn. */
  baseTokens?: number;
  /** How long the answer may be, where that is less than the model could say. */
  maxOutputTokens?: number | null;
}

/** What was set aside for a call, which has more when its answer grows. */
export interface Reservation {
  /** How long the answer may be, where credits or a cap allow no more. */
  maxOutputTokens?: number;
  /** What an answer that becomes so long has been ended by. */
  endedBy?: OutOfCredits;
  /**
   * Counts what the model says. The reader waits where more has to be set aside; rejects with a DomainError (402) when
   * there is no more.
   */
  said?(part: ModelPart): void | Promise<void>;
}

/**
 * What a model call costs, around the call: reserved before it, settled in the transaction that records its end. A call
 * is named by turn and step, so that one that is tried again is reserved and settled once.
 */
export interface Metering {
  /** Sets credits aside for a call before it is made. Throws a DomainError (402) when there are none. */
  reserve(call: MeteredCall, size: ExpectedSize): Promise<Reservation>;
  /** Books what was used and frees the rest. `usage` is what the provider reported; a stopped call may have none. */
  settle(tx: Transaction, call: MeteredCall, usage: TokenUsage | undefined): Promise<void>;
  /** Frees what calls of an ended turn have set aside and never used: they failed. The sweeper does it too. */
  release(turnId: string): Promise<void>;
}
