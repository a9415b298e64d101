import { isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

export function presentRun(run: Run): AnswerOf<'getRun'> {
  const { id, itemId: appId, spaceId, component, triggerKind: trigger, status, attempt, spec, output } = run;
  const { exitCode, endSignal: signal, errorCode, errorDetail, userId: startedBy } = run;
  const begun = attempt === 0 ? null : processIdOf(run);
  return {
    id,
    appId,
    spaceId,
    component,
    trigger,
    status,
    attempt,
    attempts: spec.retry.attempts,
    exitCode,
    signal,
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    output,
    computerId: spec.place.computerId,
    processId: begun,
    startedBy,
    createdAt: time(run.createdAt),
    startedAt: run.startedAt && time(run.startedAt),
    endedAt: run.endedAt && time(run.endedAt),
    cancelRequestedAt: run.cancelRequestedAt && time(run.cancelRequestedAt),
  };
}

/** The result of a run for the request that waits for it. */
export function presentOutcome(run: Run): AnswerOf<'runApp'> {
  const { id: runId, status, output, errorCode, errorDetail } = run;
  if (isActive(run)) return { ok: true, runId, status, output: null };
  if (status === 'succeeded') return { ok: true, runId, status, output };
  const code = errorCode ?? 'RUN_CANCELLED';
  return { ok: false, runId, status, code, error: errorDetail ?? `The run was ${status}.`, output };
}
