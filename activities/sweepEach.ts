import type { OldestFirst, Waiting } from '../models/oldestFirst.ts';
import type { Logger } from '../telemetry/logger.ts';
import { keepAlive } from './keepAlive.ts';

const rowsAtOnce = 20;

/** The outcome for a row that the sweeper has handled. */
export type Swept = 'left' | 'reminded' | 'started' | 'ended' | 'failed';

export type SweepReport = Record<'looked' | Exclude<Swept, 'left'>, number>;

export interface Sweep<Row extends Waiting> {
  logger: Logger;
  /** Rows that have waited since before this are handled. */
  before: Date;
  /** A page of rows, oldest first. */
  page(page: OldestFirst<Row>): Promise<Row[]>;
  /** The rows of a page that one query shows to be fine. */
  well?(rows: Row[]): Promise<ReadonlySet<string>>;
  /** Handles one row; `isWell` is what `well` returned for it. */
  look(row: Row, isWell: boolean): Promise<Swept>;
}

/**
 * Handles every row, page by page, a few in parallel. A row that fails is logged and counted, and does not stop the
 * others; the next sweep handles it again.
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

/** The outcome of a start or a signal by the sweeper. */
export function asSwept(reached: 'reached' | 'late', done: 'started' | 'reminded'): Swept {
  return reached === 'reached' ? done : 'failed';
}
