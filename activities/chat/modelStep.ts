import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { ModelPart, TokenUsage } from '../../integrations/chat/modelCall.ts';
import { closeTexts } from '../../models/chat/closingChunks.ts';
import { type EndedTurn, endTurnWithStep, type TurnEnd } from '../../models/chat/endTurn.ts';
import type { BegunCall, OutOfCredits } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { approvalChunks } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { FinishReason, UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { type CommittedSegment, WriterFencedError } from '../../models/chat/turnLog/entry.ts';
import { MessageFold, partIdsOf } from '../../models/chat/turnLog/foldChunks.ts';
import type { TurnWriter } from '../../models/chat/turnLog/turnWriter.ts';
import { transaction } from '../../models/database/database.ts';
import { cannotBeStored } from '../../models/database/unstorable.ts';
import { createRedactor, type Redactor } from '../../models/secrets/redactor.ts';
import type { Tool } from '../tools/tool.ts';
import { ChunkMapper, type KeptText } from './chunkMapper.ts';
import type { ChatDeps } from './deps.ts';
import { PartRedaction } from './redaction.ts';
import { recordToolCalls, targetsOf } from './toolCalls.ts';

/** How many attempts at one step may be cut off after the model began to speak. The provider charges for each. */
export const maxCuts = 8;

/** How one attempt at a step ended. */
export type StepEnd =
  | { status: 'completed'; finishReason: FinishReason | OutOfCredits; usage: TokenUsage }
  | { status: 'stopped'; finishReason?: OutOfCredits; usage: undefined };

/** The fate of the output of earlier attempts at the step. */
interface EarlierAttempts {
  isCutTooOften?: true;
  /** The committed chunks that discard that output. */
  segment?: CommittedSegment;
  /** The text that is kept and that the model continues. */
  kept?: KeptText;
}

export type StepDeps = Pick<ChatDeps, 'config' | 'database' | 'turnLog' | 'metering' | 'tools'>;

/**
 * One attempt at a step, as the turn's log sees it: take an epoch, append parts, record an end once. Taking the epoch
 * needs a commit, which runs while the provider is being called; parts that arrive earlier wait for it.
 */
export class ModelStep implements Disposable {
  readonly #deps: StepDeps;
  readonly #turn: Turn;
  readonly #step: number;
  readonly #modelId: string;
  readonly #continues: boolean;
  readonly #isTaken: boolean;
  readonly #early: ModelPart[] = [];
  readonly #abort = new AbortController();
  #attempt = 1;
  #opened: Promise<void> | undefined;
  #writer: TurnWriter | undefined;
  #mapper: ChunkMapper | undefined;
  #redaction = new PartRedaction(createRedactor([]));
  #tools: ReadonlyMap<string, Tool> = new Map();
  /** Tool calls, shown only once they are recorded: a client that sees a call may answer it at once. */
  readonly #calls: UiChunk[] = [];
  /** Set before this attempt closes its own writer, so that the abort is not taken for fencing. */
  #ending = false;
  #kept: string | undefined;

  /**
   * `continues`: the model can continue text that was cut off. `isTaken`: the transaction that created the turn has
   * already taken the epoch for this attempt and logged that the step begins.
   */
  constructor(
    deps: StepDeps,
    turn: Turn,
    step: number,
    modelId: string,
    { continues = false, isTaken = false }: { continues?: boolean; isTaken?: boolean } = {},
  ) {
    this.#deps = deps;
    this.#turn = turn;
    this.#step = step;
    this.#modelId = modelId;
    this.#continues = continues;
    this.#isTaken = isTaken;
  }

  /** The earlier attempt's text, which the model continues. Known once the attempt is open. */
  get kept(): string | undefined {
    return this.#kept;
  }

  /** Aborted when another attempt has taken over, or the turn has ended. */
  get fenced(): AbortSignal {
    return this.#abort.signal;
  }

  /** Takes the epoch, and discards the output of an earlier attempt at this step, for readers and for the message. */
  open(): Promise<void> {
    this.#opened = this.#takeOver();
    return this.#opened;
  }

  async #takeOver(): Promise<void> {
    const { turnLog } = this.#deps;
    const [turnId, step] = [this.#turn.id, this.#step];
    try {
      const taken = this.#isTaken
        ? { epoch: this.#turn.writerEpoch, nextSeq: this.#turn.nextSeq, attempts: 1, earlier: {} }
        : await this.#takeEpoch();
      this.#attempt = taken.attempts;
      const { isCutTooOften, segment, kept }: EarlierAttempts = taken.earlier;
      if (isCutTooOften) throw cutTooOften();
      if (segment !== undefined) turnLog.announce(segment);
      const nextSeq = segment === undefined ? taken.nextSeq : segment.lastSeq + 1;
      this.#kept = kept?.text;
      this.#mapper = new ChunkMapper(step, taken.epoch, kept);
      this.#writer = turnLog.writer({ turnId, epoch: taken.epoch, nextSeq });
      if (this.#ending) this.#writer.close();
      this.#writer.signal.addEventListener('abort', () => {
        if (!this.#ending) this.#abort.abort(this.#writer?.signal.reason);
      });
      const isSaid = this.#isTaken || segment !== undefined || kept !== undefined;
      if (!isSaid) this.#writer.append({ type: 'start-step' });
      for (const part of this.#early.splice(0)) this.#put(part);
    } catch (error) {
      this.#abort.abort(error);
      throw error;
    }
  }

  #takeEpoch() {
    const { database, turnLog } = this.#deps;
    const [turnId, step] = [this.#turn.id, this.#step];
    return transaction(database, async (tx) => {
      const fence = await turnLog.takeEpoch(tx, turnId);
      if (fence === undefined) throw new WriterFencedError(turnId);
      const call = await chatModels(tx).ModelCall.begin(tx, {
        turnId,
        step,
        modelId: this.#modelId,
        firstSeq: fence.nextSeq,
      });
      // Another attempt has ended the step meanwhile: the caller retries and finds its result.
      if (call.status !== 'started') throw new WriterFencedError(turnId);
      const earlier: EarlierAttempts = call.attempts === 1 ? {} : await this.#goOnFrom(tx, call, fence.epoch);
      return { ...fence, attempts: call.attempts, earlier };
    });
  }

  /**
   * Discards the earlier attempt's output in the commit that takes the epoch, unless the model can continue it. Counts
   * an attempt that was cut off while the model spoke. After too many of them the output stays, since another attempt
   * would cost money and hardly get further.
   */
  async #goOnFrom(tx: Transaction, call: BegunCall, epoch: number): Promise<EarlierAttempts> {
    const { turnLog } = this.#deps;
    const [turnId, step] = [this.#turn.id, this.#step];
    const said: UiChunk[] = [];
    await turnLog.eachAfter(turnId, call.firstSeq - 1, (chunk) => said.push(chunk), tx);
    if (said.length === 0) return {};
    const discard = partIdsOf(said);
    const fold = new MessageFold();
    for (const chunk of said) fold.add(chunk);
    if (discard.length > 0 && call.failedAttempt !== call.attempts - 1) {
      await chatModels(tx).ModelCall.noteCut(tx, { turnId, step });
      if (call.cuts + 1 >= maxCuts) return { isCutTooOften: true };
      const kept = this.#continues ? fold.onlyText() : undefined;
      if (kept !== undefined && kept.text.trim() !== '') return { kept };
    }
    const data = { step, attempt: call.attempts, discard };
    const opening: UiChunk[] = [...closeTexts(fold), { type: 'data-attempt', transient: true, data }];
    return { segment: await turnLog.appendIn(tx, turnId, opening, { epoch }) };
  }

  /** Closes the writer, however the attempt ended. */
  [Symbol.dispose](): void {
    this.#ending = true;
    this.#writer?.close();
  }

  /** Writes everything added to the log, and records that the attempt failed by itself and was not cut off. */
  async failed(): Promise<void> {
    await this.flush();
    const call = { turnId: this.#turn.id, step: this.#step };
    await chatModels(this.#deps.database).ModelCall.noteFailure(call, this.#attempt);
  }

  /** Adds model output. It is in the log, and so visible, a commit later. */
  add(part: ModelPart): void {
    for (const safe of this.#redaction.add(part)) this.#put(safe);
  }

  /** Redacts secrets in everything that is added from now on. */
  redactWith(redactor: Redactor): void {
    this.#redaction = new PartRedaction(redactor);
  }

  /** The tools offered to the model: they determine what its calls wait for. */
  offer(tools: ReadonlyMap<string, Tool>): void {
    this.#tools = tools;
  }

  #putRest(): void {
    for (const part of this.#redaction.rest()) this.#put(part);
  }

  #put(part: ModelPart): void {
    if (this.#writer === undefined || this.#mapper === undefined) {
      this.#early.push(part);
      return;
    }
    for (const chunk of this.#mapper.map(part)) {
      if (chunk.type === 'tool-input-available' || chunk.type === 'tool-input-error') this.#calls.push(chunk);
      else this.#writer.append(chunk);
    }
  }

  /** Resolves when everything added so far is visible, except text that may turn out to be part of a secret. */
  async shown(): Promise<void> {
    await this.#opened;
    await this.#writer?.flush();
  }

  /** Waits until everything added is in the log. */
  async flush(): Promise<void> {
    this.#putRest();
    await this.#writer?.flush();
  }

  /**
   * Records the step's end in one commit: its last chunks, its usage and its tool calls. Returns the calls. Given
   * `endsTurn`, a step without tool calls ends the turn in the same commit. If the answer is too large for that commit,
   * the caller still has to end the turn.
   */
  async end(end: StepEnd, endsTurn?: TurnEnd): Promise<{ calls: ToolCall[]; ended?: EndedTurn }> {
    const { config, database, turnLog, metering } = this.#deps;
    await this.#opened;
    const [turn, step, writer] = [this.#turn, this.#step, this.#writer];
    if (writer === undefined) throw new WriterFencedError(turn.id);
    this.#putRest();
    for (const chunk of this.#mapper?.closeOpen() ?? []) writer.append(chunk);
    const rest = await writer.rest();
    this.#ending = true;
    writer.close();
    const call = { turn, step, modelId: this.#modelId };
    const record = (tx: Transaction) => chatModels(tx).ModelCall.end(tx, { ...call, turnId: turn.id }, end);
    const settle = (tx: Transaction) => metering.settle(tx, call, end.usage);
    if (endsTurn !== undefined && this.#mapper?.toolCalls.length === 0) {
      const chunks: UiChunk[] = [...rest, { type: 'finish-step' }];
      try {
        const last = { epoch: writer.epoch, chunks, record, settle };
        return { calls: [], ended: await endTurnWithStep(this.#deps, turn.id, endsTurn, last) };
      } catch (error) {
        if (!cannotBeStored(error)) throw error;
      }
    }
    const made = end.status === 'completed' ? (this.#mapper?.toolCalls ?? []) : [];
    const offer = { tools: this.#tools, registry: this.#deps.tools, maxWaitMs: config.chat.maxWaitMs };
    const targets = await targetsOf(turn, made, offer);
    const { segment, calls } = await transaction(database, async (tx) => {
      const calls = await recordToolCalls(tx, turn, step, made, { ...offer, targets });
      const asked = calls.flatMap((call) => approvalChunks(call, 'asked'));
      const shown = end.status === 'completed' ? [...this.#calls, ...asked] : [];
      const segment = await turnLog.appendIn(tx, turn.id, [...rest, ...shown, { type: 'finish-step' }], {
        epoch: writer.epoch,
      });
      await record(tx);
      await settle(tx);
      return { segment, calls };
    });
    turnLog.announce(segment);
    return { calls };
  }
}

function cutTooOften(): DomainError {
  return new DomainError('unavailable', 'ANSWER_CUT_TOO_OFTEN', 'The answer was cut off too often.');
}
