import type { DomainError } from '../../base/errors.ts';
import { asCalendarPatterns, checkSchedule, nextTick, takeTick } from '../../base/schedule.ts';

const limits = { minIntervalMs: 5 * 60_000 };
const now = new Date('2026-03-27T12:00:00.000Z');
const at = (text: string) => new Date(text);

function refusalOf(cron: string, timeZone = 'Europe/Berlin'): string {
  try {
    checkSchedule({ cron, timeZone }, limits, now);
    return 'none';
  } catch (error) {
    return (error as DomainError).code;
  }
}

test.each([
  ['0 8 * * *', 'none'],
  ['*/5 * * * *', 'none'],
  ['0 9 * * MON-FRI', 'none'],
  ['0 0 29 2 *', 'none'],
  ['15,45 6-22/2 1,15 JAN-JUN *', 'none'],
  ['* * * * *', 'CRON_TOO_OFTEN'],
  ['*/4 * * * *', 'CRON_TOO_OFTEN'],
  ['0,58 * * * *', 'CRON_TOO_OFTEN'],
  ['59 23 * * *', 'none'],
  ['0 0 30 2 *', 'CRON_NEVER'],
  ['61 * * * *', 'CRON_INVALID'],
  ['0 8 * *', 'CRON_INVALID'],
  ['0 0 8 * * *', 'CRON_INVALID'],
  ['0 8 * * * 2030', 'CRON_INVALID'],
  ['@daily', 'CRON_INVALID'],
  ['CRON_TZ=UTC 0 8 * * *', 'CRON_INVALID'],
  ['0 8 L * *', 'CRON_INVALID'],
  ['0 8 * * FOO', 'CRON_INVALID'],
  ['', 'CRON_INVALID'],
])('the pattern "%s" gives %s', (cron, expected) => {
  expect(refusalOf(cron)).toBe(expected);
});

test.each([
  ['UTC', 'none'],
  ['America/New_York', 'none'],
  ['Mars/Olympus', 'TIME_ZONE_UNKNOWN'],
  ['europe/berlin', 'TIME_ZONE_UNKNOWN'],
  ['+02:00', 'TIME_ZONE_UNKNOWN'],
  ['', 'TIME_ZONE_UNKNOWN'],
])('the time zone "%s" gives %s', (timeZone, expected) => {
  expect(refusalOf('0 8 * * *', timeZone)).toBe(expected);
});

test('a time in the past is refused', () => {
  expect(() => checkSchedule({ at: now }, limits, now)).toThrow(expect.objectContaining({ code: 'AT_PAST' }));
  expect(() => checkSchedule({ at: at('2026-03-27T12:00:00.001Z') }, limits, now)).not.toThrow();
});

test.each(['2026-06-30T23:59:60Z', '9999-12-31T23:59:59-12:00'])('the time %s is refused as invalid', (text) => {
  expect(() => checkSchedule({ at: at(text) }, limits, now)).toThrow(expect.objectContaining({ code: 'AT_INVALID' }));
});

test('ticks follow the clock of the zone: a skipped hour ticks after the gap, a repeated hour ticks once', () => {
  const daily = { cron: '30 2 * * *', timeZone: 'Europe/Berlin' };
  const ticks = (from: string, count: number) => {
    const found: string[] = [];
    for (let tick = nextTick(daily, at(from)); found.length < count && tick; tick = nextTick(daily, tick)) {
      found.push(tick.toISOString());
    }
    return found;
  };
  expect(ticks('2026-03-27T12:00:00.000Z', 3)).toEqual([
    '2026-03-28T01:30:00.000Z',
    '2026-03-29T01:30:00.000Z',
    '2026-03-30T00:30:00.000Z',
  ]);
  expect(ticks('2026-10-24T12:00:00.000Z', 2)).toEqual(['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']);
});

test('missed ticks give one run for the last of them, unless it is too old', () => {
  const often = { cron: '*/5 * * * *', timeZone: 'UTC' };
  const hourMs = 3_600_000;
  expect(takeTick(often, at('2026-03-27T11:00:00.000Z'), at('2026-03-27T12:01:00.000Z'), 6 * hourMs)).toEqual({
    tick: at('2026-03-27T12:00:00.000Z'),
    next: at('2026-03-27T12:05:00.000Z'),
  });
  // After a month without a worker, only the ticks of the last hour are considered.
  expect(takeTick(often, at('2026-02-27T11:00:00.000Z'), at('2026-03-27T12:01:00.000Z'), hourMs)).toEqual({
    tick: at('2026-03-27T12:00:00.000Z'),
    next: at('2026-03-27T12:05:00.000Z'),
  });
  const daily = { cron: '0 3 * * *', timeZone: 'UTC' };
  expect(takeTick(daily, at('2026-03-27T03:00:00.000Z'), now, 6 * hourMs)).toEqual({
    tick: undefined,
    next: at('2026-03-28T03:00:00.000Z'),
  });
  const once = at('2026-03-27T11:30:00.000Z');
  expect(takeTick({ at: once }, once, now, hourMs)).toEqual({ tick: once, next: undefined });
  expect(takeTick({ at: once }, once, at('2026-03-28T12:00:00.000Z'), hourMs)).toEqual({
    tick: undefined,
    next: undefined,
  });
});

test('a pattern with a day of the month and a weekday becomes two patterns', () => {
  expect(asCalendarPatterns('0 9 13 * FRI')).toEqual(['0 9 13 * *', '0 9 * * FRI']);
  expect(asCalendarPatterns('0 9 * * FRI')).toEqual(['0 9 * * FRI']);
  expect(asCalendarPatterns('0 9 13 * *')).toEqual(['0 9 13 * *']);
});
