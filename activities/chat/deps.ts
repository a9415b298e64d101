import type { Transaction } from 'sequelize';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { ModelPart, ModelRunner, TokenUsage } from '../../integrations/chat/modelCall.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { OutOfCredits } from '../../models/chat/modelCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { CommonDeps } from '../deps.ts';
import type { PushDeps } from '../push/deps.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import type { AttachmentReader } from './context/attachmentReader.ts';
import type { StepHolds } from './stepHolds.ts';
import type { StopWatch } from './stopWatch.ts';

export interface ChatDeps extends CommonDeps, PushDeps {
  turnLog: TurnLog;
  modelRunner: ModelRunner;
  catalogue: Catalogue;
  metering: Metering;
  stopWatch: StopWatch;
  stepHolds: StepHolds;
  /** Stores tool results that are too large for a row. */
  storage: ObjectStore;
  tools: ToolRegistry;
  /** Reads attached files for prompts. */
  attachments: AttachmentReader;
  secrets: Pick<SecretStore, 'dynamic' | 'redactors'>;
}

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
  /** The answer's limit, if it is below the model's own. */
  maxOutputTokens?: number | null;
}

/** The hold of a call, which grows with its answer. */
export interface Reservation {
  /** The answer's limit, if credits or a cap set one. */
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
  /** Books the usage and releases the rest. `usage` is the provider's report; a stopped call may have none. */
  settle(tx: Transaction, call: MeteredCall, usage: TokenUsage | undefined): Promise<void>;
  /** Releases the holds of an ended turn's failed calls. The sweeper does it too. */
  release(turnId: string): Promise<void>;
}
