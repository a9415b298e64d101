import type { Config } from '../../config/index.ts';
import { appScheduleDue } from '../../workflows/apps/appScheduleDue.ts';
import { createRowSchedules } from '../schedules/rowSchedules.ts';
import type { ScheduleKit } from '../schedules/scheduleKit.ts';
import { appScheduleDueWorkflowId, appSchedulePrefix } from '../workflowIds.ts';

/** Schedules of apps' components. */
export function createAppScheduleLauncher(schedules: ScheduleKit, { installation }: Config) {
  const rows = createRowSchedules(schedules, {
    prefix: appSchedulePrefix(installation),
    workflow: appScheduleDue,
    workflowIdOf: appScheduleDueWorkflowId,
    kind: 'appScheduleDue',
    summary: 'App: start what is due',
  });
  return { scheduleApp: rows.put, mendAppSchedules: rows.mend };
}
