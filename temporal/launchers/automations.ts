import type { Config } from '../../config/index.ts';
import { automationDue, automationRun } from '../../workflows/automations/automationRun.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { createRowSchedules } from '../schedules/rowSchedules.ts';
import type { ScheduleKit } from '../schedules/scheduleKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { automationDueWorkflowId, automationRunWorkflowId, automationSchedulePrefix } from '../workflowIds.ts';

export function createAutomationLauncher(kit: LauncherKit, schedules: ScheduleKit, { installation }: Config) {
  const rows = createRowSchedules(schedules, {
    prefix: automationSchedulePrefix(installation),
    workflow: automationDue,
    workflowIdOf: automationDueWorkflowId,
    kind: 'automationDue',
    summary: 'Automation: start what is due',
  });

  return {
    /** Starts the workflow of a run whose row is written. */
    startAutomationRun: ({ id, spaceId }: { id: string; spaceId: string }): Promise<Reached> =>
      kit.start(automationRun, {
        workflowId: automationRunWorkflowId(id),
        args: [id],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'automationRun' },
        ],
        summary: 'Automation: start a run',
        mayStartAgain: true,
      }),
    scheduleAutomation: rows.put,
    mendAutomationSchedules: rows.mend,
  };
}
