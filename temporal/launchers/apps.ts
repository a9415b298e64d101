import { appRun } from '../../workflows/apps/appRun.ts';
import { appScheduleDue } from '../../workflows/apps/appScheduleDue.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { createRowSchedules } from '../schedules/rowSchedules.ts';
import { runTaskQueue } from '../taskQueues.ts';
import { appScheduleDueWorkflowId, appSchedulePrefix } from '../workflowIds.ts';

/** Runs of apps, and the schedules of their components. */
export function createAppLauncher({ config: { installation }, kit, schedules }: LauncherParts) {
  const runs = kit.actor(appRun, {
    inputOf: (runId, limits) => ({ runId, runQueue: runTaskQueue(installation), ...limits }),
    summary: 'Run of an app',
  });
  const rows = createRowSchedules(schedules, {
    prefix: appSchedulePrefix(installation),
    workflow: appScheduleDue,
    workflowIdOf: appScheduleDueWorkflowId,
    kind: 'appScheduleDue',
    summary: 'App: start what is due',
  });
  return {
    startRun: runs.tell,
    runningRuns: runs.running,
    scheduleApp: rows.put,
    mendAppSchedules: rows.mend,
  };
}
