import { DomainError } from '../../base/errors.ts';
import { currentAttempt } from '../../models/apps/attempts.ts';
import { nextInLine } from '../../models/apps/line.ts';
import { notRun } from '../../models/apps/outcome.ts';
import { findRun, isActive, type Run } from '../../models/apps/run.ts';
import { endAttempt, nextRunStep, type RunStep } from '../../models/apps/steps.ts';
import { processOf } from './attemptProcess.ts';
import type { AppDeps } from './deps.ts';
import { createRunAttempt, ownFailure } from './runAttempt.ts';
import { appSweeps, createAppSweeps } from './sweeps.ts';
import { takeDueAppRun } from './takeDueAppRun.ts';

/** How far Temporal's clock may be ahead of a worker's. Without this, a tick could be looked for too early. */
const clockSkewMs = 2_000;

/** The activities of runs of apps. */
export function createAppActivities(deps: AppDeps) {
  const { config, database, logger, workflows } = deps;
  return {
    /** Decides the next step of a run, and tells the runs whose turn this makes it. */
    async lookAtAppRun({ runId }: { runId: string }): Promise<RunStep> {
      const step = await nextRunStep(database, runId, config.apps);
      const run = await findRun(database, runId);
      if (run === undefined) return step;
      // Awaited, and retried if one could not be reached, because nothing else tells them soon. After a kill, the retry
      // tells them again.
      const told = await Promise.all((await nextInLine(database, run, config.apps)).map(workflows.startRun));
      if (told.includes('late')) throw new Error('A run whose turn it is could not be told so.');
      // Last, so that a retry does not repeat the line.
      if (!isActive(run)) noteEnd(logger, run);
      return step;
    },

    /**
     * Fails an attempt that could not be made in time. If its process may still run, as on a paused computer, the
     * attempt goes on and its workflow asks for it again.
     */
    async failAppRunAttempt({ runId, attempt, code }: { runId: string; attempt: number; code: string }): Promise<void> {
      const run = await findRun(database, runId);
      // After our own failure, the process was ended before.
      if (run?.attempt === attempt && code !== ownFailure && (await goesOn(run))) return;
      const outcome = notRun(code, 'The run could not be started; the server’s log says why.');
      await endAttempt(database, { runId, attempt }, outcome);
    },

    /** Starts the run of a schedule that is due. Returns how long to wait if it is due soon. */
    takeDueAppRun: ({ scheduleId }: { scheduleId: string }): Promise<number | undefined> =>
      takeDueAppRun(deps, { scheduleId, aheadMs: clockSkewMs }),

    ...createAppSweeps(deps),
  };

  /** True if an attempt that took too long may still go on. */
  async function goesOn(run: Run): Promise<boolean> {
    const attempt = await currentAttempt(database, run);
    if (attempt?.status !== null) return false;
    // No worker was free for it in all that time, so it still has to run.
    if (attempt.takenAt === null) return true;
    try {
      return (await processOf(deps, run)) !== undefined;
    } catch (error) {
      // The computer was unreachable in all that time.
      if (error instanceof DomainError) return false;
      throw error;
    }
  }
}

/** Writes one log line for the operator. */
function noteEnd(logger: AppDeps['logger'], run: Run): void {
  const { id: runId, itemId: appId, component, spaceId, status, attempt: attempts, exitCode, errorCode: code } = run;
  const { startedAt, endedAt } = run;
  const seconds = startedAt === null || endedAt === null ? 0 : (endedAt.getTime() - startedAt.getTime()) / 1_000;
  const facts = { runId, appId, component, spaceId, status, attempts, exitCode, code, seconds };
  logger.info(facts, 'A run of an app has ended.');
}

/** The activities with a task queue of their own, because an attempt takes as long as its program. */
export function createRunQueueActivities(deps: AppDeps) {
  return { runAppAttempt: createRunAttempt(deps) };
}

export const apps = { create: createAppActivities, sweeps: appSweeps };
