import { Cron } from 'croner';
import { DomainError } from './errors.ts';

/** When something runs by itself: repeatedly by cron in a time zone, or once. */
export type Schedule = { cron: string; timeZone: string } | { at: Date };

/** How many ticks are checked to find the shortest interval. */
const ticksLookedAt = 64;

const furthestMs = 100 * 365 * 86_400_000;

/** What is wrong with a schedule, and in which field. */
export interface ScheduleFault {
  code: 'CRON_INVALID' | 'TIME_ZONE_UNKNOWN' | 'CRON_NEVER' | 'CRON_TOO_OFTEN' | 'AT_PAST' | 'AT_INVALID';
  field: 'cron' | 'timeZone' | 'at';
  detail: string;
}

/** Throws 422 for the fault that `scheduleFault` finds. */
export function checkSchedule(schedule: Schedule, limits: { minIntervalMs: number }, now: Date): void {
  const fault = scheduleFault(schedule, limits, now);
  if (fault === undefined) return;
  const { code, field, detail } = fault;
  throw new DomainError('unprocessable', code, detail, { errors: [{ pointer: `/schedule/${field}`, detail }] });
}

/** The fault of a schedule that could never run or would run too often. Undefined when the schedule is valid. */
export function scheduleFault(
  schedule: Schedule,
  limits: { minIntervalMs: number },
  now: Date,
): ScheduleFault | undefined {
  if ('at' in schedule) {
    const aheadMs = schedule.at.getTime() - now.getTime();
    if (aheadMs <= 0) {
      return { code: 'AT_PAST', field: 'at', detail: 'The time in `at` has passed. Choose a later one.' };
    }
    // A second that no clock has, such as the 60th, gives NaN.
    if (aheadMs <= furthestMs) return undefined;
    return { code: 'AT_INVALID', field: 'at', detail: 'The time must be within the next hundred years.' };
  }
  const { timeZone } = schedule;
  if (!isKnownZone(timeZone)) {
    const detail = `There is no such time zone. Use a name of the IANA database with its exact spelling, such as ${knownZone(timeZone) ?? 'Europe/Berlin'}.`;
    return { code: 'TIME_ZONE_UNKNOWN', field: 'timeZone', detail };
  }
  const cron = tryParse(schedule.cron, timeZone);
  if (cron === undefined) {
    const detail =
      'This is not a cron expression of five fields: minute, hour, day of the month, month, day of the week.';
    return { code: 'CRON_INVALID', field: 'cron', detail };
  }
  if (cron.nextRun(now) === null) {
    return {
      code: 'CRON_NEVER',
      field: 'cron',
      detail: 'No date matches this cron expression, so it would never run.',
    };
  }
  if (shortestIntervalMs(schedule.cron, now) >= limits.minIntervalMs) return undefined;
  const detail = `The cron expression runs too often. The minimum interval is ${limits.minIntervalMs / 60_000} minutes.`;
  return { code: 'CRON_TOO_OFTEN', field: 'cron', detail };
}

/** The shortest interval between two ticks of a valid pattern. */
export function shortestIntervalMs(cron: string, now: Date): number {
  // A pattern repeats alike in every time zone, so an interval that is too short shows among the first ticks.
  const ticks = parse(cron, 'UTC').nextRuns(ticksLookedAt, now);
  return ticks.reduce((shortest, tick, at) => {
    const next = ticks[at + 1];
    return next === undefined ? shortest : Math.min(shortest, next.getTime() - tick.getTime());
  }, Number.POSITIVE_INFINITY);
}

/** The first tick after `after`. Undefined when there are no more. */
export function nextTick(schedule: Schedule, after: Date): Date | undefined {
  if ('at' in schedule) return schedule.at > after ? schedule.at : undefined;
  return parse(schedule.cron, schedule.timeZone).nextRun(after) ?? undefined;
}

export interface DueTick {
  /** The tick to run for: the last due one, unless it is too long ago. */
  tick: Date | undefined;
  /** The first tick that is not yet due. */
  next: Date | undefined;
}

/**
 * Which tick to run once the one at `due` has come. Several missed ticks are one run, for the last of them. Ticks
 * longer ago than `catchUpMs` are dropped.
 */
export function takeTick(schedule: Schedule, due: Date, now: Date, catchUpMs: number): DueTick {
  const earliest = new Date(now.getTime() - catchUpMs);
  let tick: Date | undefined;
  let next: Date | undefined = due < earliest ? nextTick(schedule, earliest) : due;
  while (next !== undefined && next <= now) {
    tick = next;
    next = nextTick(schedule, next);
  }
  return { tick, next };
}

/** The schedule in calendar patterns. Null when there is none. */
export function calendarOf(schedule: Schedule | null): { crons: string[]; timeZone: string } | { at: Date } | null {
  if (schedule === null || 'at' in schedule) return schedule;
  return { crons: asCalendarPatterns(schedule.cron), timeZone: schedule.timeZone };
}

/**
 * The patterns for a calendar, such as Temporal's, that requires both the day of the month and the day of the week to
 * match. Cron takes either.
 */
export function asCalendarPatterns(cron: string): string[] {
  const [minute, hour, day = '*', month, weekday = '*'] = cron.split(' ');
  if (day.startsWith('*') || weekday.startsWith('*')) return [cron];
  return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
}

const unit = String.raw`(\*|\d{1,2}|[A-Za-z]{3})`;
const part = String.raw`${unit}(-${unit})?(/\d{1,2})?`;
const field = `${part}(,${part})*`;
/** What all crons have in common: no seconds, no years, no nicknames, no letters that only one implementation knows. */
const fiveFields = new RegExp(`^${field}( ${field}){4}$`);

function tryParse(pattern: string, timezone: string): Cron | undefined {
  try {
    return fiveFields.test(pattern) ? new Cron(pattern, { timezone, mode: '5-part', paused: true }) : undefined;
  } catch {
    return undefined;
  }
}

/** Parses a pattern that was checked before. */
function parse(pattern: string, timezone: string): Cron {
  const cron = tryParse(pattern, timezone);
  if (cron === undefined) throw new Error('This pattern was not checked.');
  return cron;
}

function isKnownZone(timeZone: string): boolean {
  const known = knownZone(timeZone);
  // Other systems compare zone names case-sensitively.
  return known !== undefined && (known === timeZone || known.toLowerCase() !== timeZone.toLowerCase());
}

function knownZone(timeZone: string): string | undefined {
  try {
    if (!/^[A-Za-z]/.test(timeZone)) return undefined;
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
