/** A time as the API writes it: RFC 3339, UTC, milliseconds. */
export function time(date: Date): string {
  return date.toISOString();
}

export function optionalTime(date: Date | null): string | null {
  return date === null ? null : time(date);
}
