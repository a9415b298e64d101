import type { Config } from '../../config/index.ts';
import { appScheduleDue } from '../../workflows/apps/appScheduleDue.ts';
import type { Reached } from '../launcherKit.ts';
import type { MendReport, ScheduleKit, WantedSchedule } from '../schedules/scheduleKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { appScheduleDueWorkflowId, appSchedulePrefix } from '../workflowIds.ts';

/** What a schedule is made from; `when` is null where it waits for no tick. */
export interface ScheduledApp {
  id: string;
  spaceId: string;
  version: number;
  when: WantedSchedule['when'] | null;
}

/** Schedules of apps' components. A row says what is due; what they start only looks at it. */
export function createAppScheduleLauncher(schedules: ScheduleKit, { installation }: Config) {
  const prefix = appSchedulePrefix(installation);

  function wantedOf({ id, spaceId, version, when }: ScheduledApp): WantedSchedule[] {
    if (when === null) return [];
    return [
      {
        ...{ scheduleId: `${prefix}${id}`, version, when, workflow: appScheduleDue, args: [id] },
        workflowId: appScheduleDueWorkflowId(id),
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'appScheduleDue' },
        ],
        summary: 'App: start what is due',
      },
    ];
  }

  return {
    /** Makes a schedule as its row is now, or removes it where it waits for no tick. */
    async scheduleApp(schedule: ScheduledApp): Promise<Reached> {
      const [wanted] = wantedOf(schedule);
      return wanted === undefined ? schedules.remove(`${prefix}${schedule.id}`) : schedules.put(wanted);
    },

    /** Compares all of them with their rows, and mends what differs. */
    mendAppSchedules(pages: AsyncIterable<readonly ScheduledApp[]>): Promise<MendReport> {
      return schedules.mend(
        prefix,
        (async function* () {
          for await (const page of pages) yield page.flatMap(wantedOf);
        })(),
      );
    },
  };
}
