import type { Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import type { MendReport, ScheduleKit, WantedSchedule } from './scheduleKit.ts';

/** What a row's schedule is made from; `when` is null where the row waits for no tick. */
export interface Scheduled {
  id: string;
  spaceId: string;
  version: number;
  when: WantedSchedule['when'] | null;
}

interface Kind {
  /** What the ids of these schedules begin with, and those of no others. */
  prefix: string;
  /** Is told the row's id, and looks at the row. */
  workflow: (id: string) => Promise<void>;
  workflowIdOf: (id: string) => string;
  kind: string;
  summary: string;
}

/** The schedules of all rows of one kind. A row says what is due; what its schedule starts only looks at it. */
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
    /** Makes a schedule as its row is now, or removes it where it waits for no tick. */
    async put(row: Scheduled): Promise<Reached> {
      const [wanted] = wantedOf(row);
      return wanted === undefined ? schedules.remove(`${prefix}${row.id}`) : schedules.put(wanted);
    },
    /** Compares all of them with their rows, and mends what differs. */
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
