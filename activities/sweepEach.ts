const rowsAtOnce = 10;

export interface SweepReport {
  looked: number;
  started: number;
  ended: number;
}

/** Looks after each row by itself, some side by side, and counts what came of it. */
export async function sweepEach<Row>(
  rows: Row[],
  sweepOne: (row: Row) => Promise<'left' | 'started' | 'ended'>,
): Promise<SweepReport> {
  const report: SweepReport = { looked: rows.length, started: 0, ended: 0 };
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    for (const done of await Promise.all(rows.slice(at, at + rowsAtOnce).map(sweepOne))) {
      if (done !== 'left') report[done]++;
    }
  }
  return report;
}
