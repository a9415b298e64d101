import { DomainError } from '../../base/errors.ts';
import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import { ProviderError } from '../../integrations/chat/errors.ts';
import { canContinue } from '../../integrations/chat/modelRules.ts';
import { estimatePromptTokens } from '../../integrations/chat/tokens.ts';
import { isOutOfCredits } from '../../models/chat/modelCall.ts';
import { type ChatSettings, chatSettingsOf } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { completionOf, loadContext } from '../../models/chat/turnContext.ts';
import { SegmentTooLargeError } from '../../models/chat/turnLog/entry.ts';
import { cannotBeStored } from '../../models/database/unstorable.ts';
import { promptBudget, tokensOfText } from './context/budget.ts';
import type { ChatDeps } from './deps.ts';
import { audienceOf } from './endTurn.ts';
import { ModelStep } from './modelStep.ts';
import { offeredTools, settingsOf } from './offeredTools.ts';
import { buildPrompt } from './prompt.ts';
import {
  answerEnd,
  answered,
  type CallModelInput,
  type CallModelResult,
  failedCall,
  findStep,
  resultOf,
} from './stepResult.ts';
import { isStopByWorkflow } from './stopWatch.ts';

/** How many times a step's prompt is made smaller after the provider found it too long. */
const maxSqueeze = 3;

/** A turn that the caller has just created. The step need not read it again, and knows that no step came before. */
export interface TurnAsMade {
  turn: Turn;
  settings: ChatSettings;
}

export interface StepOptions {
  /** Aborts the step. */
  cancelled: AbortSignal;
  asMade?: TurnAsMade;
  progress?: StepProgress;
}

/** Called as the step progresses. */
export interface StepProgress {
  /** The model is being called. */
  onAsked(): void;
  /** Its first output is visible. */
  onShown(): void;
}

/**
 * Takes one step of a turn: asks the model and streams its answer into the turn's log.
 *
 * A turn is one answer to one user message. It is a loop of steps: each step is one model call, and the tool calls that
 * the model makes are run between two steps. The workflow `runChatTurn` drives the loop, this function does the work of
 * one step, and the turn ends with the first step that makes no tool calls.
 *
 * Idempotent by turn and step: a step that is recorded as ended is not repeated, and a step that was cut off starts
 * over under the next writer epoch, which fences off the earlier attempt. `cancelled` aborts the step. When the
 * workflow cancelled it, the output so far is kept; otherwise the next attempt discards it.
 */
export async function runStep(
  deps: ChatDeps,
  input: CallModelInput,
  { cancelled, progress, asMade }: StepOptions,
): Promise<CallModelResult> {
  const found =
    asMade === undefined ? await findStep(deps, input, cancelled) : { turn: asMade.turn, isRepeated: false };
  if ('result' in found) return found.result;
  const { turn } = found;
  const { turnId, step, modelId, squeeze = 0 } = input;
  using stop = deps.stopWatch.watch(turnId);
  using attempt = new ModelStep(deps, turn, step, modelId, {
    continues: continues(deps, modelId, turn),
    isTaken: asMade !== undefined && turn.writerEpoch > 0,
  });
  const abortSignal = AbortSignal.any([cancelled, stop.signal, attempt.fenced]);
  let isAsked = false;
  try {
    // The epoch is committed while the prompt is being built and the provider is called. The first output waits for it.
    const opened = attempt.open();
    opened.catch(() => undefined);
    // A repeated step waits for its epoch before the model is called: a step that was cut off too often must not be
    // paid for again, and a step that continues earlier text needs that text.
    if (found.isRepeated) await opened;
    await loadContext(deps.database, turn);
    const [settings, tools, redactor, completion] = await Promise.all([
      asMade?.settings ?? chatSettingsOf(deps.database, turn.spaceId),
      deps.tools.offered(turn, step),
      deps.secrets.redactors.forSpace(turn.spaceId),
      completionOf(deps.database, turn),
    ]);
    if (step >= (settings.maxStepsPerTurn ?? Number.POSITIVE_INFINITY)) throw stepLimit();
    const model = modelOf(deps, modelId);
    const { tools: offered, tokens: toolTokens } = offeredTools(tools);
    const budget = promptBudget(model, { maxContextTokens: settings.maxContextTokens, squeeze, toolTokens });
    const prompt = await buildPrompt(deps, { turn, step, model, settings, budget, kept: attempt.kept, completion });
    if (prompt === undefined) {
      await opened;
      await attempt.flush();
      return { kind: 'tooLong', by: 'estimate' };
    }
    const [system] = prompt;
    const systemTokens = system?.role === 'system' ? tokensOfText(system.content) : 0;
    const metered = await deps.metering.reserve(
      { turn, step, modelId },
      {
        inputTokens: estimatePromptTokens(prompt) + toolTokens,
        baseTokens: systemTokens + toolTokens,
        maxOutputTokens: smallest(settings.maxOutputTokens, completion?.maxOutputTokens) ?? null,
      },
    );
    attempt.redactWith(redactor);
    let isFirst = true;
    attempt.offer(tools);
    const { effort } = turn;
    const maxOutputTokens = smallest(metered.maxOutputTokens, settings.maxOutputTokens, completion?.maxOutputTokens);
    const asked = completion && settingsOf(completion, step);
    const call = { modelId, prompt, tools: offered, effort, maxOutputTokens, ...asked, abortSignal };
    let isShown = false;
    const onShown = () => {
      if (isShown) return;
      isShown = true;
      progress?.onShown();
      if (step === 0 && turn.startedAt !== null) {
        deps.meters.firstOutput(modelId, (Date.now() - turn.startedAt.getTime()) / 1_000);
      }
    };
    const ran = deps.modelRunner.run(call, (part) => {
      attempt.add(part);
      if (isFirst) void attempt.shown().then(onShown, () => undefined);
      isFirst = false;
      return metered.said?.(part);
    });
    isAsked = true;
    progress?.onAsked();
    // Await both, so that neither keeps running after the other has failed.
    const [opening, running] = await Promise.allSettled([opened, ran]);
    if (opening.status === 'rejected') throw opening.reason;
    if (running.status === 'rejected') throw running.reason;
    const { usage } = running.value;
    // If credits limited the answer's length, they are the reason that it was cut off.
    const isCutOff = running.value.finishReason === 'length' && maxOutputTokens === metered.maxOutputTokens;
    const finishReason = (isCutOff && metered.endedBy) || running.value.finishReason;
    const answer = { status: 'completed', finishReason: answerEnd(finishReason) } as const;
    // If the turn's owner must be notified of its end, the workflow ends the turn: unlike this process, it cannot
    // forget to notify them.
    const isLast = !isOutOfCredits(finishReason) && (await audienceOf(deps, turn)) === undefined;
    const { calls, ended } = await attempt.end(
      { status: 'completed', finishReason, usage },
      isLast ? answer : undefined,
    );
    if (!isFirst) onShown(); // an answer that came all at once becomes visible only with the end
    deps.meters.modelCallEnded(modelId, 'completed');
    deps.meters.modelUsed(modelId, usage);
    if (ended !== undefined) return await answered(deps, ended, answer);
    return await resultOf(deps, { turnId, step, modelId, finishReason }, calls);
  } catch (error) {
    if (attempt.fenced.aborted) return failedCall(deps, turn, modelId, asFailure(attempt.fenced.reason));
    if (stop.signal.aborted || isStopByWorkflow(cancelled)) {
      await attempt.end({ status: 'stopped', usage: undefined });
      return { kind: 'stopped' };
    }
    cancelled.throwIfAborted();
    if (isAsked && error instanceof DomainError && isOutOfCredits(error.code)) {
      // The output so far is kept and billed.
      await attempt.end({ status: 'stopped', finishReason: error.code, usage: undefined });
      return { kind: 'failed', code: error.code, retryable: false };
    }
    // The output before the failure stays until the next attempt discards it.
    if (error instanceof ProviderError) await attempt.failed();
    else await attempt.flush();
    const isTooLong = error instanceof ProviderError && error.code === 'CONTEXT_TOO_LONG';
    if (isTooLong && squeeze < maxSqueeze) return { kind: 'tooLong', by: 'provider' };
    return failedCall(deps, turn, modelId, asFailure(error));
  }
}

function modelOf(deps: ChatDeps, modelId: string): CatalogueModel {
  return deps.catalogue.resolve({ modelId }).model;
}

function continues(deps: ChatDeps, modelId: string, { effort }: Turn): boolean {
  const model = deps.catalogue.find(modelId);
  return model !== undefined && canContinue(model, effort);
}

function stepLimit(): DomainError {
  return new DomainError(
    'unprocessable',
    'STEP_LIMIT',
    'The turn has reached the limit of steps that its space has set.',
  );
}

function smallest(...limits: (number | null | undefined)[]): number | undefined {
  const given = limits.filter((limit) => typeof limit === 'number');
  return given.length === 0 ? undefined : Math.min(...given);
}

/** Turns a failure that every retry would repeat into an error that ends the turn and that the client sees. */
function asFailure(error: unknown): unknown {
  if (!(error instanceof SegmentTooLargeError) && !cannotBeStored(error)) return error;
  return new DomainError('unprocessable', 'ANSWER_TOO_LARGE', 'The answer is too large for the database.');
}
