import type { Transaction } from 'sequelize';
import type { ModelPart, TokenUsage } from '../../integrations/chat/modelCall.ts';
import type { OutOfCredits } from '../../models/chat/modelCall.ts';
import type { Turn } from '../../models/chat/turn.ts';

export interface MeteredCall {
  turn: Turn;
  step: number;
  modelId: string;
}

/** The estimated tokens of a call. */
export interface ExpectedSize {
  inputTokens: number;
  /** The system prompt's and the tools' share of the input; absent for calls beside a turn's steps. */
  baseTokens?: number;
  /** The answer's limit, where it is below the model's own. */
  maxOutputTokens?: number | null;
}

/** The hold of a call, which grows with its answer. */
export interface Reservation {
  /** The answer's limit, where credits or a cap set one. */
  maxOutputTokens?: number;
  /** Why an answer that reaches this limit was ended. */
  endedBy?: OutOfCredits;
  /**
   * Counts the model's output. The reader waits while the hold grows; rejects with a DomainError (402) when there are
   * no more credits.
   */
  said?(part: ModelPart): void | Promise<void>;
}

/**
 * Meters a model call: credits are reserved before it and settled in the transaction that records its end. A call is
 * identified by turn and step, so a retried call is reserved and settled once.
 */
export interface Metering {
  /** Sets credits aside for a call before it is made. Throws a DomainError (402) when there are none. */
  reserve(call: MeteredCall, size: ExpectedSize): Promise<Reservation>;
  /** Books what was used and releases the rest. `usage` is what the provider reported; a stopped call may have none. */
  settle(tx: Transaction, call: MeteredCall, usage: TokenUsage | undefined): Promise<void>;
  /** Releases the holds of an ended turn's failed calls. The sweeper does it too. */
  release(turnId: string): Promise<void>;
}
