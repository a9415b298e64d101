import {
  CancellationScope,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { CallModelResult } from '../../activities/chat/stepResult.ts';
import type { SummarizeThreadResult } from '../../activities/chat/summarizeThread.ts';
import type { Activities } from '../../activities/main.ts';
import { isHistoryFull } from '../actor.ts';
import { tellBadEnd } from '../outcome.ts';
import { failureOf, modelWork, proxyRows } from '../retries.ts';
import { afterTurn } from './afterTurn.ts';
import { decideAfterFailure } from './rules/modelRetry.ts';
import { endOf, failed, type TurnOutcome } from './rules/turnEnd.ts';
import { type Answers, runToolCalls, toolsAnsweredSignal } from './toolCalls.ts';
import { WorkingTime } from './workingTime.ts';

/** Ids and limits only: content is in MySQL, never in a history. */
export interface RunChatTurnInput {
  turnId: string;
  /** The catalogue's id of the model to ask first. */
  modelId: string;
  maxSteps: number;
  /** The step at which a long turn continues in a new history; absent in the first history. */
  firstStep?: number;
  /** How long a worker may miss heartbeats before another worker repeats its work, in milliseconds. */
  heartbeatTimeoutMs: number;
  /** How much working time the turn has left, not counting waits. */
  workTimeMs: number;
  /** How many events a history may have before the turn continues in a new one; the server may suggest it earlier. */
  maxHistoryEvents: number;
}

type StepResult = TurnOutcome | Extract<CallModelResult, { kind: 'toolCalls' }>;

/** The user wants the turn to stop. The turn's row says so too, for a busy worker. */
export const stopTurnSignal = defineSignal('stopTurn');

/** The turn's progress, for an operator in the Temporal UI. */
const turnProgressQuery = defineQuery<{ step: number; modelId: string; attempt: number }>('progress');

/**
 * How long the workflow waits for a head start, in heartbeat timeouts. The worker renews its workflow task while the
 * local activity runs. If it dies, another worker gets the task, as it would get an activity. Up to this time, that
 * costs the server less than an activity, its heartbeats and the workflow task behind it.
 */
const headStartPatience = 2.5;

/**
 * One turn: model call after model call until the model is done, the turn is stopped, or a limit is reached. The end is
 * written once, in the last commit of the answer or by `endTurn`, and hands the thread to its next turn.
 */
export async function runChatTurn(input: RunChatTurnInput): Promise<TurnOutcome['kind']> {
  const work = new CancellationScope();
  const answers: Answers = { count: 0 };
  setHandler(toolsAnsweredSignal, () => void answers.count++);
  setHandler(stopTurnSignal, () => work.cancel());
  const time = new WorkingTime(input.workTimeMs);
  let isLate = false;
  const limitTime = () => {
    const giveUp = () => {
      isLate = !work.consideredCancelled;
      work.cancel();
    };
    // The timer rejects only if the whole workflow is cancelled, and `work` reports that.
    time.over().then(giveUp, () => undefined);
  };

  let outcome: TurnOutcome;
  try {
    outcome = await work.run(async () => {
      const early = await headStarted(input, time);
      if (early?.kind !== 'answered') limitTime();
      return answer(input, answers, time, early);
    });
  } catch (error) {
    if (isCancellation(error)) outcome = { kind: 'stopped' };
    else if (failureOf(error) !== undefined) outcome = { kind: 'failed', code: 'INTERNAL' };
    else throw error;
  }
  if (isLate && outcome.kind === 'stopped') outcome = { kind: 'timeLimit' };
  const end = endOf(outcome);
  if (end !== undefined) {
    const { turnId } = input;
    const known = outcome.kind === 'answered' ? outcome.after : undefined;
    // Retried without limit, since every turn must end. Local, since it is short and the turn's last work: this saves
    // the server two of a turn's three workflow tasks.
    const { endTurn } = proxyRows<Activities>();
    await CancellationScope.nonCancellable(async () => {
      const after = known === undefined ? await endTurn({ turnId, end }) : known;
      if (after) await afterTurn(turnId, after);
    });
    if (end.status === 'completed') setCurrentDetails('Turn: completed');
    else tellBadEnd('Turn', end);
  }
  return outcome.kind;
}

/**
 * The result of the turn's first model call, which may have begun before this workflow. Most turns have no other call.
 * A local activity saves the server an activity, a timer and a workflow task.
 */
async function headStarted(input: RunChatTurnInput, time: WorkingTime): Promise<CallModelResult | undefined> {
  const { turnId, modelId, heartbeatTimeoutMs, firstStep } = input;
  if (firstStep !== undefined) return undefined;
  setCurrentDetails(`Asks ${modelId}: step 1, attempt 1`);
  const forMs = Math.min(heartbeatTimeoutMs * headStartPatience, time.leftMs);
  const { awaitHeadStart } = proxyLocalActivities<Activities>({
    startToCloseTimeout: forMs + heartbeatTimeoutMs,
    retry: { maximumAttempts: 1 },
  });
  try {
    return (await awaitHeadStart({ turnId, modelId, forMs })) ?? undefined;
  } catch (error) {
    if (failureOf(error) === undefined) throw error;
    return undefined; // callModel then takes the step and reports its failure
  }
}

async function answer(
  input: RunChatTurnInput,
  answers: Answers,
  time: WorkingTime,
  early: CallModelResult | undefined,
): Promise<TurnOutcome> {
  const progress = { step: input.firstStep ?? 0, modelId: input.modelId, attempt: 1 };
  setHandler(turnProgressQuery, () => progress);
  for (; progress.step < input.maxSteps; progress.step++) {
    const result = await takeStep(input, progress, progress.step === 0 ? early : undefined);
    if (result.kind !== 'toolCalls') return result;
    if (await runToolCalls(input, progress.step, result.toolCalls, { answers, time })) return { kind: 'handedOver' };
    // A turn that must stop ends in this history. Otherwise no signal is lost: its content is in the rows too, and the
    // next history reads them first.
    if (isHistoryFull(input) && !CancellationScope.current().consideredCancelled) {
      await continueAsNew<typeof runChatTurn>({
        ...input,
        firstStep: progress.step + 1,
        modelId: progress.modelId,
        workTimeMs: time.leftMs,
      });
    }
  }
  return { kind: 'stepLimit' };
}

/** One model call, with its retries and fallbacks. After a crash, a step continues from the log. */
async function takeStep(
  input: RunChatTurnInput,
  progress: { step: number; modelId: string; attempt: number },
  early?: CallModelResult,
): Promise<StepResult> {
  // A provider's failure is a result and not an activity failure, so that this function decides what comes next.
  const { callModel, summarizeThread } = proxyActivities<Activities>(modelWork(input.heartbeatTimeoutMs));
  const { turnId } = input;
  const tried = [progress.modelId];
  let squeeze = 0;
  let begun = early;
  for (progress.attempt = 1; ; progress.attempt++) {
    const { step, modelId, attempt } = progress;
    setCurrentDetails(`Asks ${modelId}: step ${step + 1}, attempt ${attempt}`);
    let result: CallModelResult | SummarizeThreadResult =
      begun ??
      (await callModel.executeWithOptions({ summary: `step ${step + 1}, ${modelId}` }, [
        { turnId, step, modelId, ...(squeeze > 0 && { squeeze }) },
      ]));
    begun = undefined;
    if (result.kind === 'tooLong' && result.by === 'estimate') {
      result = await summarizeThread.executeWithOptions({ summary: `make room, ${modelId}` }, [
        { turnId, modelId, squeeze },
      ]);
    }
    // Neither counts as a failed attempt: the step starts over, with the room that was made or with a smaller prompt.
    if (result.kind === 'tooLong') squeeze++;
    if (result.kind === 'tooLong' || result.kind === 'summarized') {
      progress.attempt--;
      continue;
    }
    if (result.kind !== 'failed') return result;
    const next = decideAfterFailure(result, progress.attempt, tried, Math.random());
    if (next.action === 'fail') return failed(result);
    if (next.action === 'retry') {
      await sleep(next.delayMs);
    } else {
      tried.push(next.modelId);
      progress.modelId = next.modelId;
      progress.attempt = 0;
      squeeze = 0;
    }
  }
}
