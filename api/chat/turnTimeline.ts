import { costsOfCalls } from '../../models/billing/costs.ts';
import { toCredits } from '../../models/billing/money.ts';
import { isAside, type ModelCall, titleStep } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCallTimes } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { turnWorkflowId } from '../../temporal/workflowIds.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { optionalTime, time } from '../frame/times.ts';
import { workflowLink } from '../frame/workflowLink.ts';

type Timeline = AnswerOf<'getTurnTimeline'>;

/** More steps than any turn may make. */
const mostCalls = 5_000;

/** The events of a turn: names, times and numbers, but none of its content. */
export async function turnTimeline(
  { config, database }: Pick<RouteDeps, 'config' | 'database'>,
  turn: Turn,
): Promise<Timeline> {
  const { ModelCall, ToolCall } = chatModels(database);
  const { id: turnId, threadId, status, finishReason, errorCode } = turn;
  const [modelCalls, toolCalls, usage] = await Promise.all([
    ModelCall.findAll({ where: { turnId }, order: [['step', 'ASC']], limit: mostCalls, raw: true }),
    ToolCall.timesOf(turnId, mostCalls),
    ModelCall.usageOf(turnId),
  ]);
  const costs = await costsOfCalls(
    database,
    turnId,
    modelCalls.map(({ step }) => step),
  );
  const costOf = (step: number) => costs.get(step) ?? 0;
  return {
    turnId,
    threadId,
    status,
    workflow: workflowLink(config, turnWorkflowId(turnId)),
    queuedAt: time(turn.createdAt),
    startedAt: optionalTime(turn.startedAt),
    stopRequestedAt: optionalTime(turn.stopRequestedAt),
    endedAt: optionalTime(turn.endedAt),
    finishReason,
    errorCode,
    modelCalls: modelCalls.map((call) => presentModelCall(call, costOf(call.step))),
    toolCalls: toolCalls.map(presentToolCall),
    usage,
    credits: toCredits(modelCalls.reduce((sum, { step }) => sum + costOf(step), 0)),
  };
}

function presentModelCall(call: ModelCall, micro: number): Timeline['modelCalls'][number] {
  const { step, modelId, attempts, status, finishReason, startedAt, endedAt } = call;
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = call;
  return {
    purpose: step === titleStep ? 'title' : isAside(step) ? 'summary' : 'step',
    step: isAside(step) ? null : step,
    modelId,
    attempts,
    status,
    finishReason,
    startedAt: time(startedAt),
    endedAt: optionalTime(endedAt),
    usage: { inputTokens, cachedInputTokens, outputTokens, reasoningTokens },
    credits: toCredits(micro),
  };
}

function presentToolCall(call: ToolCallTimes): Timeline['toolCalls'][number] {
  const {
    id,
    toolName,
    step,
    status,
    waitsFor,
    decision,
    deadlineAt,
    answeredAt,
    createdAt,
    begunAt,
    endedAt,
    control,
    target,
  } = call;
  const askedForApproval = waitsFor === 'approval' || decision !== null;
  return {
    toolCallId: id,
    toolName,
    step,
    status,
    waitsFor,
    calledAt: time(createdAt),
    approval: askedForApproval ? { decision, deadlineAt: optionalTime(deadlineAt) } : null,
    answeredAt: optionalTime(answeredAt),
    startedAt: optionalTime(begunAt),
    endedAt: optionalTime(endedAt),
    control,
    host: target?.host ?? null,
  };
}
