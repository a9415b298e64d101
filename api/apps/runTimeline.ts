import { type Attempt, attemptsOf } from '../../models/apps/attempts.ts';
import { processIdOf, type Run } from '../../models/apps/run.ts';
import { costOfComputer } from '../../models/billing/costs.ts';
import { toCredits } from '../../models/billing/money.ts';
import { actorWorkflowId } from '../../temporal/workflowIds.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { optionalTime, time } from '../frame/times.ts';
import { workflowLink } from '../frame/workflowLink.ts';

type Timeline = AnswerOf<'getRunTimeline'>;

/** The stages of a run and their times. It has no text that a program or a person wrote. */
export async function runTimeline(
  { config, database }: Pick<RouteDeps, 'config' | 'database'>,
  run: Run,
): Promise<Timeline> {
  const { id, status, triggerKind, component, spaceId, spec } = run;
  const { computerId } = spec.place;
  const attempts = await attemptsOf(database, id);
  const span = { from: run.startedAt ?? run.createdAt, to: run.endedAt ?? new Date() };
  const micro = run.startedAt === null ? 0 : await costOfComputer(database, { spaceId, computerId, ...span });
  return {
    runId: id,
    status,
    trigger: triggerKind,
    component,
    computerId,
    workflow: workflowLink(config, actorWorkflowId('appRun', id)),
    queuedAt: time(run.createdAt),
    startedAt: optionalTime(run.startedAt),
    cancelRequestedAt: optionalTime(run.cancelRequestedAt),
    endedAt: optionalTime(run.endedAt),
    attempts: attempts.map((attempt) => presentAttempt(run, attempt)),
    outputBytes: attempts.reduce((sum, { logBytes }) => sum + (logBytes ?? 0), 0),
    computerCredits: toCredits(micro),
  };
}

function presentAttempt({ id }: Run, row: Attempt): Timeline['attempts'][number] {
  const { attempt, status, exitCode, endSignal: signal, errorCode, errorDetail, woke, logBytes } = row;
  return {
    attempt,
    processId: processIdOf({ id, attempt }),
    beganAt: time(row.beganAt),
    computerReadyAt: optionalTime(row.awakeAt),
    computerWoken: woke,
    startedAt: optionalTime(row.startedAt),
    endedAt: optionalTime(row.endedAt),
    status: status ?? 'running',
    exitCode,
    signal,
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    outputBytes: logBytes,
  };
}
