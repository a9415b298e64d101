import { Cron } from 'croner';
import { DomainError } from '../errors.ts';

/** When an automation runs by itself: again and again by the clock of a time zone, or once. */
export type AutomationSchedule = { cron: string; timeZone: string } | { at: Date };

/** The ticks that are looked at for the shortest time between two of them. */
const ticksLookedAt = 64;

const furthestMs = 100 * 365 * 86_400_000;

/** Throws 422: `CRON_INVALID`, `TIME_ZONE_UNKNOWN`, `CRON_NEVER`, `CRON_TOO_OFTEN`, `AT_PAST`, `AT_INVALID`. */
export function checkSchedule(schedule: AutomationSchedule, limits: { minIntervalMs: number }, now: Date): void {
  if ('at' in schedule) {
    const aheadMs = schedule.at.getTime() - now.getTime();
    if (aheadMs <= 0) throw refused('AT_PAST', '/schedule/at', 'This time has passed.');
    // A second that no clock has, such as the 60th, is no number.
    if (!(aheadMs <= furthestMs)) {
      throw refused('AT_INVALID', '/schedule/at', 'This is no time of the next hundred years.');
    }
    return;
  }
  checkTimeZone(schedule.timeZone);
  const cron = parse(schedule.cron, schedule.timeZone);
  if (cron.nextRun(now) === null) {
    throw refused('CRON_NEVER', '/schedule/cron', 'No day is ever like this, so it would never run.');
  }
  // A pattern repeats itself, whatever the zone: what comes too soon does so among its first ticks.
  const ticks = parse(schedule.cron, 'UTC').nextRuns(ticksLookedAt, now);
  const isTooOften = ticks.some((tick, at) => {
    const next = ticks[at + 1];
    return next !== undefined && next.getTime() - tick.getTime() < limits.minIntervalMs;
  });
  if (!isTooOften) return;
  const minutes = limits.minIntervalMs / 60_000;
  throw refused('CRON_TOO_OFTEN', '/schedule/cron', `An automation runs at most every ${minutes} minutes.`);
}

/** The first tick after `after`; undefined when there is none any more. */
export function nextTick(schedule: AutomationSchedule, after: Date): Date | undefined {
  if ('at' in schedule) return schedule.at > after ? schedule.at : undefined;
  return parse(schedule.cron, schedule.timeZone).nextRun(after) ?? undefined;
}

export interface DueTick {
  /** The tick to run for: the last one that is due, if it is not too long ago. */
  tick: Date | undefined;
  /** The first tick that is not due yet. */
  next: Date | undefined;
}

/**
 * Which tick to run, when that at `due` has come. Several that were missed are one run, for the last of them; those
 * that are longer ago than `catchUpMs` are not made up for.
 */
export function takeTick(schedule: AutomationSchedule, due: Date, now: Date, catchUpMs: number): DueTick {
  const earliest = new Date(now.getTime() - catchUpMs);
  let tick: Date | undefined;
  let next: Date | undefined = due < earliest ? nextTick(schedule, earliest) : due;
  while (next !== undefined && next <= now) {
    tick = next;
    next = nextTick(schedule, next);
  }
  return { tick, next };
}

/** The same for a calendar; null where there is none. */
export function calendarOf(
  schedule: AutomationSchedule | null,
): { crons: string[]; timeZone: string } | { at: Date } | null {
  if (schedule === null || 'at' in schedule) return schedule;
  return { crons: asCalendarPatterns(schedule.cron), timeZone: schedule.timeZone };
}

/**
 * The pattern for a calendar that wants both the day of the month and the day of the week to fit, where cron takes
 * either: Temporal's is one.
 */
export function asCalendarPatterns(cron: string): string[] {
  const [minute, hour, day = '*', month, weekday = '*'] = cron.split(' ');
  if (day.startsWith('*') || weekday.startsWith('*')) return [cron];
  return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
}

const unit = String.raw`(\*|\d{1,2}|[A-Za-z]{3})`;
const part = String.raw`${unit}(-${unit})?(/\d{1,2})?`;
const field = `${part}(,${part})*`;
/** What every cron has in common: no seconds, no years, no nicknames, no letters of a single implementation. */
const fiveFields = new RegExp(`^${field}( ${field}){4}$`);

function parse(pattern: string, timezone: string): Cron {
  try {
    if (fiveFields.test(pattern)) return new Cron(pattern, { timezone, mode: '5-part', paused: true });
  } catch {
    // Said below.
  }
  const detail =
    'This is not a cron expression of five fields: minute, hour, day of the month, month, day of the week.';
  throw refused('CRON_INVALID', '/schedule/cron', detail);
}

function checkTimeZone(timeZone: string): void {
  const known = knownZone(timeZone);
  // Elsewhere than here, the cases of letters matter.
  if (known !== undefined && (known === timeZone || known.toLowerCase() !== timeZone.toLowerCase())) return;
  const hint = known ?? 'Europe/Berlin';
  const detail = `There is no such time zone. Name one of the IANA database as it is spelled there, such as ${hint}.`;
  throw refused('TIME_ZONE_UNKNOWN', '/schedule/timeZone', detail);
}

function knownZone(timeZone: string): string | undefined {
  try {
    if (!/^[A-Za-z]/.test(timeZone)) return undefined;
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

function refused(code: string, pointer: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail, { errors: [{ pointer, detail }] });
}
