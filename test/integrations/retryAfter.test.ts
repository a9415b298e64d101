import { parseRetryAfter } from '../../integrations/retryAfter.ts';

const now = Date.parse('2026-03-01T12:00:00Z');

test.each([
  [{ 'retry-after': '7' }, 7_000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after': '0' }, 0],
  [{ 'retry-after': 'Sun, 01 Mar 2026 12:00:30 GMT' }, 30_000],
  [{ 'retry-after': 'Sun, 01 Mar 2026 11:59:00 GMT' }, 0],
  [{ 'retry-after-ms': '1250', 'retry-after': '9' }, 1_250],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '-3' }, undefined],
  [{ 'retry-after': '' }, undefined],
  [{}, undefined],
  [undefined, undefined],
])('%j means %s ms', (headers, expected) => {
  expect(parseRetryAfter(headers as Record<string, string> | undefined, now)).toBe(expected);
});
