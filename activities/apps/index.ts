import { DomainError } from '../../base/errors.ts';
import { currentAttempt } from '../../models/apps/attempts.ts';
import { nextInLine } from '../../models/apps/line.ts';
import { notRun } from '../../models/apps/outcome.ts';
import { findRun, type Run } from '../../models/apps/run.ts';
import { endAttempt, nextRunStep, type RunStep } from '../../models/apps/steps.ts';
import { processOf } from './attemptProcess.ts';
import type { AppDeps } from './deps.ts';
import { createRunAttempt, ownFailure } from './runAttempt.ts';
import { appSweeps, createAppSweeps } from './sweeps.ts';
import { takeDueAppRun } from './takeDueAppRun.ts';

/** How far Temporal's clock may be ahead of a worker's: its tick is not to be found too early. */
const clockSkewMs = 2_000;

/** What the runs of apps are made of. */
export function createAppActivities(deps: AppDeps) {
  const { config, database, workflows } = deps;
  return {
    /** What a run does next. Those whose turn it is by that are told. */
    async lookAtAppRun({ runId }: { runId: string }): Promise<RunStep> {
      const step = await nextRunStep(database, runId, config.apps);
      const run = await findRun(database, runId);
      if (run === undefined) return step;
      // Waited for, and asked again where one could not be reached: nobody else tells them soon. Who is killed before
      // tells them again.
      const told = await Promise.all((await nextInLine(database, run, config.apps)).map(workflows.startRun));
      if (told.includes('late')) throw new Error('A run whose turn it is could not be told so.');
      return step;
    },

    /**
     * For an attempt that could not be made in its time. While there is a process of it, as on a computer that stands
     * still, it goes on: its workflow asks for it again.
     */
    async failAppRunAttempt({ runId, attempt, code }: { runId: string; attempt: number; code: string }): Promise<void> {
      const run = await findRun(database, runId);
      // By our own failure it was ended before.
      if (run?.attempt === attempt && code !== ownFailure && (await goesOn(run))) return;
      const outcome = notRun(code, 'It could not be run; the log of the server says why.');
      await endAttempt(database, { runId, attempt }, outcome);
    },

    /** Looks whether a schedule is due, and starts its run. Returns how long to wait where it soon is. */
    takeDueAppRun: ({ scheduleId }: { scheduleId: string }): Promise<number | undefined> =>
      takeDueAppRun(deps, { scheduleId, aheadMs: clockSkewMs }),

    ...createAppSweeps(deps),
  };

  /** Whether an attempt that took too long is not over all the same. */
  async function goesOn(run: Run): Promise<boolean> {
    const attempt = await currentAttempt(database, run);
    if (attempt?.status !== null) return false;
    // No worker had room for it in all that time: it is still to be run.
    if (attempt.takenAt === null) return true;
    try {
      return (await processOf(deps, run)) !== undefined;
    } catch (error) {
      // A computer that nobody has reached in all that time.
      if (error instanceof DomainError) return false;
      throw error;
    }
  }
}

/** What runs on a queue of its own: an attempt takes as long as its program. */
export function createRunQueueActivities(deps: AppDeps) {
  return { runAppAttempt: createRunAttempt(deps) };
}

export const apps = { create: createAppActivities, sweeps: appSweeps };
