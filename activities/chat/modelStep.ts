import type { ModelPart, TokenUsage } from '../../integrations/llm/modelCall.ts';
import type { OutOfCredits } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { approvalChunks } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { transaction } from '../../models/database.ts';
import { createRedactor, type Redactor } from '../../models/secrets/redactor.ts';
import type { FinishReason, UiChunk } from '../../models/turnLog/chunks.ts';
import { WriterFencedError } from '../../models/turnLog/entry.ts';
import { MessageFold, partIdsOf } from '../../models/turnLog/foldChunks.ts';
import type { TurnWriter } from '../../models/turnLog/turnWriter.ts';
import type { Tool } from '../tools/tool.ts';
import { ChunkMapper } from './chunkMapper.ts';
import type { ChatDeps } from './deps.ts';
import { recordToolCalls } from './recordToolCalls.ts';
import { PartRedaction } from './redaction.ts';

/** How one attempt at a step ended. */
export type StepEnd =
  | { status: 'completed'; finishReason: FinishReason | OutOfCredits; usage: TokenUsage }
  | { status: 'stopped'; finishReason?: OutOfCredits; usage: undefined };

/**
 * One attempt at a step, as the log sees it: an epoch taken, parts appended, an end recorded once. Opening it takes a
 * commit, which runs in parallel with the provider's first milliseconds; parts that are faster wait for it.
 */
export class ModelStep {
  readonly #deps: ChatDeps;
  readonly #turn: Turn;
  readonly #step: number;
  readonly #modelId: string;
  readonly #early: ModelPart[] = [];
  readonly #abort = new AbortController();
  #opened: Promise<void> | undefined;
  #writer: TurnWriter | undefined;
  #mapper: ChunkMapper | undefined;
  #redaction = new PartRedaction(createRedactor([]));
  #tools: ReadonlyMap<string, Tool> = new Map();
  /** Calls become visible when they are recorded: a client that sees one can answer it. */
  readonly #calls: UiChunk[] = [];
  /** Set before we close the writer ourselves, which does not count as fencing. */
  #ending = false;

  constructor(deps: ChatDeps, turn: Turn, step: number, modelId: string) {
    this.#deps = deps;
    this.#turn = turn;
    this.#step = step;
    this.#modelId = modelId;
  }

  /** Aborted when another attempt has taken over, or the turn has ended. */
  get fenced(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * Takes the epoch. The output of an earlier attempt at this step is discarded in the log, for readers and for the
   * message.
   */
  open(): Promise<void> {
    this.#opened = this.#takeOver();
    return this.#opened;
  }

  async #takeOver(): Promise<void> {
    const { database, turnLog } = this.#deps;
    const turnId = this.#turn.id;
    try {
      const taken = await transaction(database, async (tx) => {
        const fence = await turnLog.takeEpoch(tx, turnId);
        if (fence === undefined) throw new WriterFencedError(turnId);
        const call = await chatModels(tx).ModelCall.begin(tx, {
          turnId: this.#turn.id,
          step: this.#step,
          modelId: this.#modelId,
          firstSeq: fence.nextSeq,
        });
        return { ...fence, call };
      });
      const opening = await this.#openingChunks(taken.call);
      this.#mapper = new ChunkMapper(this.#step, taken.epoch);
      this.#writer = turnLog.writer({ turnId, epoch: taken.epoch, nextSeq: taken.nextSeq });
      this.#writer.signal.addEventListener('abort', () => {
        if (!this.#ending) this.#abort.abort(this.#writer?.signal.reason);
      });
      for (const chunk of opening) this.#writer.append(chunk);
      for (const part of this.#early.splice(0)) this.#put(part);
    } catch (error) {
      this.#abort.abort(error);
      throw error;
    }
  }

  /** Adds model output. It is in the log, and so visible, a commit later. */
  add(part: ModelPart): void {
    for (const safe of this.#redaction.add(part)) this.#put(safe);
  }

  /** Secrets are taken out of everything that is added from now on. */
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

  /** Waits until everything added so far is visible, except what may turn out to be part of a secret. */
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
   * Records the step's end with its last chunk, its usage and its tool calls, in one commit that happens once. Returns
   * the calls.
   */
  async end(end: StepEnd): Promise<ToolCall[]> {
    const { config, database, turnLog, metering } = this.#deps;
    await this.#opened;
    const [turn, step, writer] = [this.#turn, this.#step, this.#writer];
    if (writer === undefined) throw new WriterFencedError(turn.id);
    this.#putRest();
    for (const chunk of this.#mapper?.closeOpen() ?? []) writer.append(chunk);
    await writer.flush();
    this.#ending = true;
    writer.close();
    const { segment, calls } = await transaction(database, async (tx) => {
      const calls =
        end.status === 'completed'
          ? await recordToolCalls(tx, turn, step, this.#mapper, {
              tools: this.#tools,
              registry: this.#deps.tools,
              maxWaitMs: config.chat.maxWaitMs,
            })
          : [];
      const asked = calls.flatMap((call) => approvalChunks(call, 'asked'));
      const shown = end.status === 'completed' ? [...this.#calls, ...asked] : [];
      const segment = await turnLog.appendIn(tx, turn.id, [...shown, { type: 'finish-step' }], {
        epoch: writer.epoch,
      });
      await chatModels(tx).ModelCall.end(tx, { turnId: turn.id, step, modelId: this.#modelId }, end);
      await metering.settle(tx, { turn, step, modelId: this.#modelId }, end.usage);
      return { segment, calls };
    });
    turnLog.announce(segment);
    return calls;
  }

  async #openingChunks(call: { attempts: number; firstSeq: number }): Promise<UiChunk[]> {
    if (call.attempts === 1) return [{ type: 'start-step' }];
    const said: UiChunk[] = [];
    await this.#deps.turnLog.eachAfter(this.#turn.id, call.firstSeq - 1, (chunk) => said.push(chunk));
    if (said.length === 0) return [{ type: 'start-step' }];
    const fold = new MessageFold();
    for (const chunk of said) fold.add(chunk);
    const closing: UiChunk[] = fold.openTextIds().map(({ id, type }) => ({ type: `${type}-end`, id }));
    const data = { step: this.#step, attempt: call.attempts, discard: partIdsOf(said) };
    return [...closing, { type: 'data-attempt', transient: true, data }];
  }
}
