import { disabledBy, pauseMs, retryDelayMs } from '../../../models/webhooks/retries.ts';

const failed = { answer: 500, error: 'ANSWER_NOT_2XX' };
const busy = { ...failed, answer: 429, retryAfterMs: 90_000 };
const delaysMs = [5_000, 300_000];
const dayMs = 86_400_000;

test('Each delay is up to a fifth longer, and there is no retry after the last delay or a 410', () => {
  expect([0, 0.5, 1].map((random) => retryDelayMs(failed, 0, delaysMs, random))).toEqual([5_000, 5_500, 6_000]);
  expect(retryDelayMs(failed, 1, delaysMs, 0)).toBe(300_000);
  expect(retryDelayMs(failed, 2, delaysMs, 0)).toBeUndefined();
  expect(retryDelayMs({ ...failed, answer: 410 }, 0, delaysMs, 0)).toBeUndefined();
});

test('Retry-After lengthens a shorter delay and does not change a longer one', () => {
  expect(retryDelayMs(busy, 0, delaysMs, 0)).toBe(90_000);
  expect(retryDelayMs(busy, 1, delaysMs, 0)).toBe(300_000);
});

test('The pause of an endpoint grows with the time that it fails, up to five minutes', () => {
  expect(pauseMs(failed, 0)).toBe(0);
  expect(pauseMs(failed, 60_000)).toBe(6_000);
  expect(pauseMs(failed, dayMs)).toBe(300_000);
  expect(pauseMs(busy, 0)).toBe(90_000);
});

test('An endpoint is disabled by a 410, or when it has failed for long', () => {
  const limits = { isLast: true, longestFailingMs: dayMs };
  expect(disabledBy({ ...failed, answer: 410 }, 0, { ...limits, isLast: false })).toBe('GONE');
  expect(disabledBy(failed, dayMs, limits)).toBe('FAILING');
  expect(disabledBy(failed, dayMs - 1, limits)).toBeUndefined();
  // The endpoint may have had no delivery in that time.
  expect(disabledBy(failed, dayMs, { ...limits, isLast: false })).toBeUndefined();
});
