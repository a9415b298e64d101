import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { ProviderError } from '../../integrations/llm/errors.ts';
import { estimatePromptTokens } from '../../integrations/llm/tokens.ts';
import { ModelCall } from '../../models/chat/modelCall.ts';
import { ToolCall } from '../../models/chat/toolCall.ts';
import { Turn } from '../../models/chat/turn.ts';
import { DomainError } from '../../models/errors.ts';
import { SegmentTooLargeError } from '../../models/turnLog/entry.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { ModelStep } from './modelStep.ts';
import { buildPrompt } from './prompt.ts';

export interface CallModelInput {
  turnId: string;
  step: number;
  modelId: string;
}

/** What a workflow needs to know of a model call: never what was said. */
export type CallModelResult =
  | { kind: 'answered'; finishReason: 'stop' | 'length' | 'content-filter' | 'other' }
  | { kind: 'toolCalls'; toolCalls: { id: string; toolName: string }[]; modelId: string }
  | { kind: 'stopped' }
  | { kind: 'alreadyEnded' }
  | { kind: 'failed'; code: string; retryable: boolean; retryAfterMs?: number; fallbackModelId?: string };

/**
 * One step of a turn: asks the model and streams its answer into the turn's log. Idempotent by turn and step: a step that is
 * recorded as ended is not asked again, and one that was cut off begins anew under the next epoch.
 */
export function createCallModel(deps: ActivityDeps) {
  return async function callModel(input: CallModelInput): Promise<CallModelResult> {
    const { turnId, step, modelId } = input;
    const [turn, earlier] = await Promise.all([Turn.findByPk(turnId), ModelCall.findOne({ where: { turnId, step } })]);
    if (turn === null || turn.isTerminal) return { kind: 'alreadyEnded' };
    if (earlier?.status === 'stopped' || turn.stopRequestedAt !== null) return { kind: 'stopped' };
    if (earlier?.status === 'completed') return recordedResult(earlier);

    using heartbeat = keepAlive();
    using stop = deps.stopWatch.watch(turnId);
    const attempt = new ModelStep(deps, turn, step, modelId);
    const abortSignal = AbortSignal.any([heartbeat.cancelled, stop.signal, attempt.fenced]);
    try {
      // The epoch's commit is under way while the prompt is read and the provider is called; it is needed at the first part.
      const opened = attempt.open();
      opened.catch(() => undefined);
      const [prompt, redactor] = await Promise.all([
        buildPrompt(deps.turnLog, turn, step),
        deps.secrets.redactors.forSpace(turn.spaceId),
      ]);
      const inputTokens = estimatePromptTokens(prompt);
      const { maxOutputTokens } = await deps.metering.reserve({ turn, step, modelId }, inputTokens);
      attempt.redactWith(redactor);
      const ran = deps.modelRunner.run({ modelId, prompt, effort: turn.effort, maxOutputTokens, abortSignal }, (part) =>
        attempt.add(part),
      );
      // Both are awaited whatever happens, so that neither is left running behind a failure of the other.
      const [opening, running] = await Promise.allSettled([opened, ran]);
      if (opening.status === 'rejected') throw opening.reason;
      if (running.status === 'rejected') throw running.reason;
      const { finishReason, usage } = running.value;
      await attempt.end({ status: 'completed', finishReason, usage });
      const toolCalls = attempt.toolCalls.map(({ id, toolName }) => ({ id, toolName }));
      if (toolCalls.length > 0) return { kind: 'toolCalls', toolCalls, modelId };
      return { kind: 'answered', finishReason: finishReason === 'tool-calls' ? 'other' : finishReason };
    } catch (error) {
      if (attempt.fenced.aborted) throw asFailure(attempt.fenced.reason);
      if (stop.signal.aborted || isStopByWorkflow(heartbeat.cancelled)) {
        await attempt.end({ status: 'stopped', usage: undefined });
        return { kind: 'stopped' };
      }
      heartbeat.cancelled.throwIfAborted();
      return failedResult(deps, turn, modelId, error, () => attempt.flush());
    }
  };
}

/** Cancellation by the workflow means stop; a worker that shuts down means: somebody else goes on. */
function isStopByWorkflow(cancelled: AbortSignal): boolean {
  return cancelled.aborted && cancelled.reason instanceof CancelledFailure && cancelled.reason.message === 'CANCELLED';
}

async function recordedResult(call: ModelCall): Promise<CallModelResult> {
  const toolCalls = await ToolCall.ofStep(call.turnId, call.step);
  if (toolCalls.length > 0) {
    return {
      kind: 'toolCalls',
      toolCalls: toolCalls.map(({ id, toolName }) => ({ id, toolName })),
      modelId: call.modelId,
    };
  }
  const reason = call.finishReason;
  return {
    kind: 'answered',
    finishReason: reason === 'stop' || reason === 'length' || reason === 'content-filter' ? reason : 'other',
  };
}

async function failedResult(
  deps: ActivityDeps,
  turn: Turn,
  modelId: string,
  error: unknown,
  flush: () => Promise<void>,
): Promise<CallModelResult> {
  // What was said before the failure is kept, until the next attempt discards it.
  await flush();
  if (error instanceof ProviderError) {
    deps.logger.warn({ err: error.cause, code: error.code, turnId: turn.id, modelId }, error.message);
    return {
      kind: 'failed',
      code: error.code,
      retryable: error.retryable,
      ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }),
      ...fallback(deps, turn, modelId, error),
    };
  }
  if (error instanceof DomainError) return { kind: 'failed', code: error.code, retryable: false };
  throw asFailure(error);
}

/** What the next try would meet again is not tried again. */
function asFailure(error: unknown): unknown {
  if (!(error instanceof SegmentTooLargeError)) return error;
  return ApplicationFailure.create({ type: 'SegmentTooLarge', message: error.message, nonRetryable: true });
}

function fallback(deps: ActivityDeps, turn: Turn, modelId: string, error: ProviderError) {
  if (!error.fallback) return undefined;
  const [next] = deps.catalogue.fallbacksOf(modelId, { effort: turn.effort });
  return next && { fallbackModelId: next.model.id };
}
