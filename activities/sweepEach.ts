import type { OldestFirst, Waiting } from '../models/oldestFirst.ts';
import type { Logger } from '../telemetry/logger.ts';
import { keepAlive } from './keepAlive.ts';

const rowsAtOnce = 20;

/** What became of a row that the sweeper has looked after. */
export type Swept = 'left' | 'reminded' | 'started' | 'ended' | 'failed';

export type SweepReport = Record<'looked' | Exclude<Swept, 'left'>, number>;

export interface Sweep<Row extends Waiting> {
  logger: Logger;
  /** Rows that wait since before this are looked after. */
  before: Date;
  /** A page of them, oldest first. */
  page(page: OldestFirst<Row>): Promise<Row[]>;
  /** Those of a page that are known to be well by one question. */
  well?(rows: Row[]): Promise<ReadonlySet<string>>;
  /** Looks after one row; `isWell` is what `well` has said of it. */
  look(row: Row, isWell: boolean): Promise<Swept>;
}

/**
 * Looks after every row there is, page by page, some side by side. One that fails is logged and counted, and stops
 * nobody else; the next sweep looks at it again.
 */
export async function sweepEach<Row extends Waiting>(sweep: Sweep<Row>): Promise<SweepReport> {
  using heartbeat = keepAlive();
  const report: SweepReport = { looked: 0, reminded: 0, started: 0, ended: 0, failed: 0 };
  for (let after: Row | undefined; ; ) {
    const rows = await sweep.page({ before: sweep.before, after });
    after = rows.at(-1);
    if (after === undefined) return report;
    const well = (await sweep.well?.(rows)) ?? new Set();
    report.looked += rows.length;
    for (let at = 0; at < rows.length; at += rowsAtOnce) {
      heartbeat.cancelled.throwIfAborted();
      await Promise.all(rows.slice(at, at + rowsAtOnce).map((row) => lookAt(row, well.has(row.id))));
    }
  }

  async function lookAt(row: Row, isWell: boolean): Promise<void> {
    const swept = await sweep.look(row, isWell).catch((error: unknown) => {
      sweep.logger.warn(
        { err: error, id: row.id },
        'The sweeper could not look after this; the next sweep tries again.',
      );
      return 'failed' as const;
    });
    if (swept !== 'left') report[swept]++;
  }
}

/** What a start or a signal of the sweeper came to. */
export function asSwept(reached: 'reached' | 'late', done: 'started' | 'reminded'): Swept {
  return reached === 'reached' ? done : 'failed';
}
