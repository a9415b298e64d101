import {
  type CalendarSpec,
  type Client,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleOptionsAction,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { SearchAttributePair, Workflow } from '@temporalio/common';
import type { Config } from '../../config/index.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Reached } from '../launcherKit.ts';
import { mainTaskQueue } from '../taskQueues.ts';

/**
 * A schedule as its row wants it. Its workflow only looks at the row, which says what is due. So the schedule is a
 * hint, and may fire twice, late, or not at all.
 */
export interface WantedSchedule<W extends Workflow = Workflow> {
  scheduleId: string;
  /** The version of the row. Another version means another schedule. */
  version: number;
  /** Cron expressions of five fields in a time zone, or one time. */
  when: { crons: readonly string[]; timeZone: string } | { at: Date };
  workflow: W;
  args: Parameters<W>;
  /** Temporal appends the time. */
  workflowId: string;
  attributes: SearchAttributePair[];
  /** Spreads out rows that are due at the same time. */
  jitterMs?: number;
  summary: string;
}

export interface MendReport {
  put: number;
  removed: number;
  failed: number;
}

const answerTimeoutMs = 10_000;
const listTimeoutMs = 60_000;

/**
 * Schedules of rows. A paused row has none, because Temporal drops a schedule that has been paused for a week. Only
 * `mend` rejects. The next sweep mends schedules that could not be reached.
 */
export function createScheduleKit({ client, config, logger }: { client: Client; config: Config; logger: Logger }) {
  const taskQueue = mainTaskQueue(config.installation);

  async function reach(scheduleId: string, call: () => Promise<unknown>): Promise<Reached> {
    try {
      await client.withDeadline(Date.now() + answerTimeoutMs, call);
      return 'reached';
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return 'reached';
      logger.warn({ err: error, scheduleId }, 'A schedule could not be reached; the sweeper will reach it.');
      return 'late';
    }
  }

  /** Makes a schedule or brings it up to date. */
  function put<W extends Workflow>(wanted: WantedSchedule<W>): Promise<Reached> {
    const { scheduleId, version, when, jitterMs = 0, workflow, args, workflowId, attributes, summary } = wanted;
    const schedule = {
      spec: { ...specOf(when), jitter: jitterMs },
      action: {
        type: 'startWorkflow',
        workflowType: workflow,
        args,
        workflowId,
        taskQueue,
        typedSearchAttributes: attributes,
        staticSummary: summary,
      } as unknown as ScheduleOptionsAction,
      // A running workflow looks at the row already, and the row makes up for missed ticks.
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' as const },
      state: { note: noteOf(version) },
    };
    return reach(scheduleId, async () => {
      try {
        await client.schedule.create({ scheduleId, ...schedule });
      } catch (error) {
        if (!(error instanceof ScheduleAlreadyRunning)) throw error;
        await client.schedule
          .getHandle(scheduleId)
          .update(() => ({ ...schedule, state: { ...schedule.state, paused: false } }));
      }
    });
  }

  function remove(scheduleId: string): Promise<Reached> {
    return reach(scheduleId, () => client.schedule.getHandle(scheduleId).delete());
  }

  /** The schedules whose ids have this prefix, each with its note. */
  async function list(prefix: string): Promise<Map<string, string | undefined>> {
    const query = `ScheduleId STARTS_WITH '${prefix.replaceAll("'", "''")}'`;
    const found = new Map<string, string | undefined>();
    await client.withDeadline(Date.now() + listTimeoutMs, async () => {
      for await (const { scheduleId, state } of client.schedule.list({ query, pageSize: 1_000 })) {
        found.set(scheduleId, state.note);
      }
    });
    return found;
  }

  return {
    put,
    remove,

    /**
     * Compares the schedules with this prefix with what the rows want, one page of rows at a time. Makes schedules that
     * are missing or behind, and removes those that no row wants. The rows are read after the list, so a schedule that
     * is made meanwhile is not removed.
     */
    async mend(prefix: string, pages: AsyncIterable<readonly WantedSchedule[]>): Promise<MendReport> {
      const report: MendReport = { put: 0, removed: 0, failed: 0 };
      const listed = await list(prefix);
      const count = (reached: Reached, done: 'put' | 'removed') => report[reached === 'reached' ? done : 'failed']++;
      for await (const page of pages) {
        for (const wanted of page) {
          const note = listed.get(wanted.scheduleId);
          listed.delete(wanted.scheduleId);
          if (note !== noteOf(wanted.version)) count(await put(wanted), 'put');
        }
      }
      for (const scheduleId of listed.keys()) count(await remove(scheduleId), 'removed');
      return report;
    },
  };
}

export type ScheduleKit = ReturnType<typeof createScheduleKit>;

function noteOf(version: number): string {
  return `Version ${version} of its row`;
}

const months = [
  ...['JANUARY', 'FEBRUARY', 'MARCH', 'APRIL', 'MAY', 'JUNE'],
  ...['JULY', 'AUGUST', 'SEPTEMBER', 'OCTOBER', 'NOVEMBER', 'DECEMBER'],
] as Extract<CalendarSpec['month'], string>[];

function specOf(when: WantedSchedule['when']) {
  if ('crons' in when) return { cronExpressions: [...when.crons], timezone: when.timeZone };
  // Schedules have whole seconds. Rounded up, so that the row is due by then.
  const at = new Date(Math.ceil(when.at.getTime() / 1_000) * 1_000);
  const once = {
    year: at.getUTCFullYear(),
    month: months[at.getUTCMonth()],
    dayOfMonth: at.getUTCDate(),
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
  };
  return { calendars: [once], timezone: 'UTC' };
}
