import { DomainError } from '../../base/errors.ts';
import { ProviderError } from '../../integrations/chat/errors.ts';
import { needsOf } from '../../models/chat/attachments.ts';
import { takeLeft } from '../../models/chat/callHolds.ts';
import { type EndedTurn, requestStop } from '../../models/chat/endTurn.ts';
import { isOutOfCredits, type ModelCall } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { AnswerEnd } from '../../models/chat/turnLog/chunks.ts';
import type { ModelFailure } from '../../workflows/chat/rules/modelRetry.ts';
import type { CommonDeps } from '../deps.ts';
import type { ChatDeps } from './deps.ts';
import { type AfterTurn, followUp } from './endTurn.ts';

export interface CallModelInput {
  turnId: string;
  step: number;
  modelId: string;
  /** How many times the provider has found this step's prompt too long; absent means never. */
  squeeze?: number;
}

/** A tool call, for the workflow. With `waits`, a client or a person must answer before it can run. */
export interface ToolCallReference {
  id: string;
  toolName: string;
  waits?: true;
}

/** The result of a model call for the workflow. It never carries content. */
export type CallModelResult =
  /** With `after`, the turn has ended too: it says what is left to do, or is null. */
  | { kind: 'answered'; finishReason: AnswerEnd; after?: AfterTurn | null }
  | { kind: 'toolCalls'; toolCalls: ToolCallReference[]; modelId: string }
  | { kind: 'stopped' }
  | { kind: 'alreadyEnded' }
  /** The workflow must have the thread summarised or, if the provider said so, call again with a smaller prompt. */
  | { kind: 'tooLong'; by: 'estimate' | 'provider' }
  | FailedCall;

/**
 * Finds the turn whose step is to be taken, or the step's result if it has ended already. Waits for a step that another
 * process is taking.
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
    // The step may have ended since it was read, whether it was held or not.
    [turn, earlier] = await read();
    if (earlier?.leftAs && (await takeLeft(deps.database, turnId))) {
      return { result: earlier.leftAs as CallModelResult };
    }
  }
  if (turn === null) return { result: { kind: 'alreadyEnded' } };
  if (turn.isTerminal) {
    // The turn may have ended with this very step in a process that died before it reported the result.
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

/** The result of a step that has ended its turn. Follow-up work that fails here is left to the workflow. */
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
    deps.logger.warn({ err: error, turnId }, 'The work after a turn failed; the turn’s workflow tries again.');
    return { kind: 'answered', finishReason };
  }
}

/** The result of an ended step. Reading it again gives the same result. */
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

/** How a model call failed, for the workflow to decide what to do. */
export interface FailedCall extends ModelFailure {
  kind: 'failed';
}

/** Turns a provider's failure or a DomainError into a result. Throws anything else, so that the activity is retried. */
export async function failedCall(deps: ChatDeps, turn: Turn, modelId: string, error: unknown): Promise<FailedCall> {
  if (error instanceof ProviderError) {
    deps.meters.modelCallEnded(modelId, error.code);
    deps.logger.warn({ err: error.cause, code: error.code, turnId: turn.id, modelId }, error.message);
    const fallbackModelId = error.fallback ? await fallbackOf(deps, turn, modelId) : undefined;
    return {
      kind: 'failed',
      code: error.code,
      retryable: error.retryable,
      ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }),
      ...(fallbackModelId !== undefined && { fallbackModelId }),
    };
  }
  if (error instanceof DomainError) return { kind: 'failed', code: error.code, retryable: false };
  throw error;
}

async function fallbackOf(deps: ChatDeps, turn: Turn, modelId: string): Promise<string | undefined> {
  const [message, tools] = await Promise.all([
    chatModels(deps.database).Message.find(turn.threadId, turn.userMessageId),
    deps.tools.offered(turn),
  ]);
  // A fallback model needs only those of the required capabilities that the original model has.
  const able = deps.catalogue.find(modelId)?.capabilities;
  const { images, pdf } = needsOf(message?.parts ?? []);
  const needs = {
    images: images && able?.images === true,
    pdf: pdf && able?.pdf === true,
    tools: tools.size > 0 && able?.tools === true,
  };
  return deps.catalogue.fallbacksOf(modelId, { effort: turn.effort, needs })[0]?.model.id;
}

/** This many consecutive steps with identical calls are a loop. */
const repeatsOfLoop = 12;

/** The error code of the limit that a turn has reached with this step's calls. */
async function limitReached(
  deps: Pick<CommonDeps, 'config' | 'database'>,
  turnId: string,
  step: number,
): Promise<'TOOL_CALL_LIMIT' | 'TOOL_LOOP' | undefined> {
  const { ToolCall } = chatModels(deps.database);
  if ((await ToolCall.countOf(turnId)) > deps.config.chat.maxToolCallsPerTurn) return 'TOOL_CALL_LIMIT';
  if (step + 1 < repeatsOfLoop) return undefined;
  const steps = await ToolCall.since(turnId, step + 1 - repeatsOfLoop);
  if (steps.size < repeatsOfLoop) return undefined;
  const signatures = new Set([...steps.values()].map(signatureOf));
  return signatures.size === 1 ? 'TOOL_LOOP' : undefined;
}

function signatureOf(calls: readonly ToolCall[]): string {
  return JSON.stringify(calls.map(({ toolName, input }) => [toolName, input]));
}
