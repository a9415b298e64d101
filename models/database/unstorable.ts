/** Errors that recur however often the statement runs, because its data do not fit. */
const unstorable = new Set([
  1118, // row too large
  1153, // packet bigger than max_allowed_packet
  1197, // more than the binlog's cache takes of one transaction
  1264, // out of a number's range
  1366, // not text of the column's character set
  1406, // data too long for the column
  2020, // packet bigger than the client takes
]);

/** Whether the database will never take this, so that it must not be retried. The only place that decides this. */
export function cannotBeStored(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { errno, parent } = error as { errno?: number; parent?: unknown };
  if (errno !== undefined && unstorable.has(errno)) return true;
  // A text longer than JavaScript's maximum.
  if (error instanceof RangeError && error.message === 'Invalid string length') return true;
  return parent !== undefined && cannotBeStored(parent);
}
