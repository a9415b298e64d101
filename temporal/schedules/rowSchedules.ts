import type { Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import type { MendReport, ScheduleKit, WantedSchedule } from './scheduleKit.ts';

/** The part of a row that its schedule is made from. `when` is null if the row waits for no tick. */
export interface Scheduled {
  id: string;
  spaceId: string;
  version: number;
  when: WantedSchedule['when'] | null;
}

interface Kind {
  /** The prefix of these schedules' ids, which no other schedules have. */
  prefix: string;
  /** Gets the row's id and looks at the row. */
  workflow: (id: string) => Promise<void>;
  workflowIdOf: (id: string) => string;
  kind: string;
  summary: string;
}

/** The schedules of all rows of one kind. A row says what is due. A schedule's workflow only looks at its row. */
export function createRowSchedules(schedules: ScheduleKit, { prefix, workflow, workflowIdOf, kind, summary }: Kind) {
  function wantedOf({ id, spaceId, version, when }: Scheduled): WantedSchedule[] {
    if (when === null) return [];
    return [
      {
        ...{ scheduleId: `${prefix}${id}`, version, when, workflow, args: [id], workflowId: workflowIdOf(id), summary },
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: kind },
        ],
      },
    ];
  }

  return {
    /** Makes a schedule match its row, or removes it if the row waits for no tick. */
    async put(row: Scheduled): Promise<Reached> {
      const [wanted] = wantedOf(row);
      return wanted === undefined ? schedules.remove(`${prefix}${row.id}`) : schedules.put(wanted);
    },
    /** Compares all schedules with their rows, and mends those that differ. */
    mend(pages: AsyncIterable<readonly Scheduled[]>): Promise<MendReport> {
      return schedules.mend(
        prefix,
        (async function* () {
          for await (const page of pages) yield page.flatMap(wantedOf);
        })(),
      );
    },
  };
}
