import { takeLeft } from '../../models/chat/callHolds.ts';
import { type EndedTurn, requestStop } from '../../models/chat/endTurn.ts';
import { isOutOfCredits, type ModelCall } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { AnswerEnd } from '../../models/chat/turnLog/chunks.ts';
import { limitReached } from '../tools/limits.ts';
import type { ChatDeps } from './deps.ts';
import { type AfterTurn, followUp } from './endTurn.ts';
import type { FailedCall } from './failedCall.ts';

export interface CallModelInput {
  turnId: string;
  step: number;
  modelId: string;
  /** How often the provider has found this step's prompt too long; absent means never. */
  squeeze?: number;
}

/** A tool call, for the workflow: `waits` is one that a client or a person answers first. */
export interface ToolCallReference {
  id: string;
  toolName: string;
  waits?: true;
}

/** What a workflow needs to know about a model call: never its content. */
export type CallModelResult =
  /** `after` is there where the turn has ended with it: what is left to do, or null. */
  | { kind: 'answered'; finishReason: AnswerEnd; after?: AfterTurn | null }
  | { kind: 'toolCalls'; toolCalls: ToolCallReference[]; modelId: string }
  | { kind: 'stopped' }
  | { kind: 'alreadyEnded' }
  /** The thread must be summarised first or, where the provider said so, the prompt made smaller than estimated. */
  | { kind: 'tooLong'; by: 'estimate' | 'provider' }
  | FailedCall;

/**
 * The turn whose step is to be taken, or the result of the step if it has ended before. One that another process holds
 * is waited for.
 */
export async function findStep(
  deps: ChatDeps,
  input: CallModelInput,
  cancelled: AbortSignal,
): Promise<{ turn: Turn; isRepeated: boolean } | { result: CallModelResult }> {
  const { turnId, step } = input;
  const { ModelCall, Turn } = chatModels(deps.database);
  const read = () => Promise.all([Turn.findByPk(turnId), ModelCall.findOne({ where: { turnId, step } })]);
  let [turn, earlier] = await read();
  if (step === 0 && earlier?.status === 'started' && turn?.isTerminal === false) {
    await deps.stepHolds.whileHeld(turnId, cancelled, () => requestStop(deps, turnId));
    // It may have ended since it was read, held or not.
    [turn, earlier] = await read();
    if (earlier?.leftAs && (await takeLeft(deps.database, turnId))) {
      return { result: earlier.leftAs as CallModelResult };
    }
  }
  if (turn === null) return { result: { kind: 'alreadyEnded' } };
  if (turn.isTerminal) {
    // It may have ended with this very step, and whoever took it may have died before anybody heard of it.
    const last = turn.status === 'completed' && earlier?.status === 'completed' ? earlier : undefined;
    const result = last && (await resultOfEnded(deps, last));
    return { result: result?.kind === 'answered' ? result : { kind: 'alreadyEnded' } };
  }
  if (earlier?.status === 'stopped' && isOutOfCredits(earlier.finishReason)) {
    return { result: { kind: 'failed', code: earlier.finishReason, retryable: false } };
  }
  if (earlier?.status === 'stopped' || turn.stopRequestedAt !== null) return { result: { kind: 'stopped' } };
  if (earlier?.status !== 'completed') return { turn, isRepeated: earlier !== null };
  return { result: await resultOfEnded(deps, earlier) };
}

async function resultOfEnded(deps: ChatDeps, call: ModelCall): Promise<CallModelResult> {
  return resultOf(deps, call, await chatModels(deps.database).ToolCall.ofStep(call.turnId, call.step));
}

/** The result of a step that has ended its turn. What could not be done after that is the workflow's. */
export async function answered(
  deps: ChatDeps,
  ended: EndedTurn,
  end: { status: 'completed'; finishReason: AnswerEnd },
): Promise<CallModelResult> {
  const { finishReason } = end;
  try {
    const after = await followUp(deps, ended, end);
    return { kind: 'answered', finishReason, after: after ?? null };
  } catch (error) {
    const turnId = ended.turn?.id;
    deps.logger.warn({ err: error, turnId }, 'What follows a turn could not be done; its workflow tries again.');
    return { kind: 'answered', finishReason };
  }
}

/** The result of an ended step: the same however often it is read. */
export async function resultOf(
  deps: ChatDeps,
  { turnId, step, modelId, finishReason }: Pick<ModelCall, 'turnId' | 'step' | 'modelId' | 'finishReason'>,
  calls: readonly ToolCall[],
): Promise<CallModelResult> {
  if (calls.length > 0) {
    const limit = await limitReached(deps, turnId, step);
    if (limit !== undefined) return { kind: 'failed', code: limit, retryable: false };
    return { kind: 'toolCalls', toolCalls: calls.map(referenceTo), modelId };
  }
  if (isOutOfCredits(finishReason)) return { kind: 'failed', code: finishReason, retryable: false };
  return { kind: 'answered', finishReason: answerEnd(finishReason) };
}

export function answerEnd(finishReason: string | null): AnswerEnd {
  const isKnown = finishReason === 'stop' || finishReason === 'length' || finishReason === 'content-filter';
  return isKnown ? finishReason : 'other';
}

function referenceTo({ id, toolName, waitsFor }: ToolCall): ToolCallReference {
  return { id, toolName, ...(waitsFor !== 'nothing' && { waits: true as const }) };
}
