import { automationDue, automationRun } from '../../workflows/automations/automationRun.ts';
import type { LauncherParts, Reached } from '../launcherKit.ts';
import { createRowSchedules } from '../schedules/rowSchedules.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { automationDueWorkflowId, automationRunWorkflowId, automationSchedulePrefix } from '../workflowIds.ts';

export function createAutomationLauncher({ config: { installation }, kit, schedules }: LauncherParts) {
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
