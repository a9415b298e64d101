/**
 * How long the other side asks to wait: `retry-after-ms` (OpenAI's), or Retry-After as seconds or as a date (RFC 9110
 * §10.2.3). Undefined when the headers are missing or unreadable.
 */
export function parseRetryAfter(
  headers: Record<string, string> | undefined,
  nowMs: number = Date.now(),
): number | undefined {
  const milliseconds = headers?.['retry-after-ms']?.trim();
  if (milliseconds !== undefined && /^\d+(\.\d+)?$/.test(milliseconds)) return Math.round(Number(milliseconds));

  const value = headers?.['retry-after']?.trim();
  if (value === undefined || value === '') return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.round(Number(value) * 1000);
  const date = /^[A-Za-z]{3}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
