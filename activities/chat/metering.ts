import type { Transaction } from 'sequelize';
import type { TokenUsage } from '../../integrations/llm/modelCall.ts';
import type { Turn } from '../../models/chat/turn.ts';

export interface MeteredCall {
  turn: Turn;
  step: number;
  modelId: string;
}

/**
 * What a model call costs, around the call: reserved before it, settled in the transaction that records its end. A call is named
 * by turn and step, so that one that is tried again is reserved and settled once.
 */
export interface Metering {
  /**
   * Sets credits aside for a prompt of about so many tokens and an answer of at most so many (else as long as the model can), and may bound the
   * answer by them. Throws a DomainError (402) when there are none.
   */
  reserve(call: MeteredCall, inputTokens: number, maxOutputTokens?: number): Promise<{ maxOutputTokens?: number }>;
  /** Books what was used and frees the rest. `usage` is what the provider reported; a stopped call may have none. */
  settle(tx: Transaction, call: MeteredCall, usage: TokenUsage | undefined): Promise<void>;
  /** Frees what calls of an ended turn have set aside and never used: they failed. The sweeper does it too. */
  release(turnId: string): Promise<void>;
}
