import type { Config } from '../../config/index.ts';
import type { Automation } from '../../models/automations/automation.ts';
import { automationDue, automationRun } from '../../workflows/automations/automationRun.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import type { MendReport, ScheduleKit, WantedSchedule } from '../schedules/scheduleKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { automationDueWorkflowId, automationRunWorkflowId, automationSchedulePrefix } from '../workflowIds.ts';

/** What a schedule is made from; `crons` is the automation's pattern as a calendar reads it. */
export type ScheduledAutomation = Pick<Automation, 'id' | 'spaceId' | 'version' | 'nextRunAt'> & {
  when: WantedSchedule['when'] | null;
};

export function createAutomationLauncher(kit: LauncherKit, schedules: ScheduleKit, { installation }: Config) {
  const prefix = automationSchedulePrefix(installation);

  function wantedOf({ id, spaceId, version, when, nextRunAt }: ScheduledAutomation): WantedSchedule[] {
    if (when === null || nextRunAt === null) return [];
    return [
      {
        ...{ scheduleId: `${prefix}${id}`, version, when, workflow: automationDue, args: [id] },
        workflowId: automationDueWorkflowId(id),
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'automationDue' },
        ],
        summary: 'Automation: start what is due',
      },
    ];
  }

  return {
    /** Starts a run whose intent is written. */
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

    /** Makes an automation's schedule as its row is now, or removes it where it waits for no tick. */
    async scheduleAutomation(automation: ScheduledAutomation): Promise<Reached> {
      const [wanted] = wantedOf(automation);
      return wanted === undefined ? schedules.remove(`${prefix}${automation.id}`) : schedules.put(wanted);
    },

    /** Compares all of them with their rows, and mends what differs. */
    mendAutomationSchedules(pages: AsyncIterable<readonly ScheduledAutomation[]>): Promise<MendReport> {
      return schedules.mend(
        prefix,
        (async function* () {
          for await (const page of pages) yield page.flatMap(wantedOf);
        })(),
      );
    },
  };
}
