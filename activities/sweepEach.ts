import type { Config } from '../config/index.ts';
import type { Database } from '../models/database/database.ts';
import type { OldestFirst, Waiting } from '../models/sweeping/oldestFirst.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { ActorReference, Reached } from '../temporal/launcherKit.ts';
import { keepAlive } from './keepAlive.ts';
import { OutOfTime, sweepTime } from './sweepTime.ts';

const rowsAtOnce = 20;

/** The outcome for a row that the sweeper has handled. */
export type Swept = 'left' | 'reminded' | 'started' | 'ended' | 'failed';

export type SweepReport = Record<'looked' | Exclude<Swept, 'left'>, number>;

/** The sweeps of an area, by name. */
export interface Sweeps<Name extends string> {
  /** Sweeps that start intents without a workflow, and end rows that have lost theirs. */
  rescue: readonly Name[];
  /** Sweeps that delete by age, compare and index. However far behind they are, they must not delay a rescue. */
  upkeep: readonly Name[];
  /** Those that read contents. An object may take longer than other sweeps can wait. */
  contents?: readonly Name[];
  /** Those that start waiting work, which a quiet installation leaves alone (docs/backups.md). */
  quietened?: readonly Name[];
}

export interface Sweep<Row extends Waiting> {
  logger: Logger;
  /** The name of the list, for a sweep with several lists. */
  list?: string;
  /** Only rows that have waited since before this time. */
  before: Date;
  /** A page of rows, oldest first. */
  page(page: OldestFirst<Row>): Promise<Row[]>;
  /** The ids of a page's rows that one query shows to be fine. */
  well?(rows: Row[]): Promise<ReadonlySet<string>>;
  /** Handles one row; `isWell` is what `well` returned for it. */
  look(row: Row, isWell: boolean): Promise<Swept>;
}

/**
 * Handles every row, page by page, a few in parallel. A row that fails is logged and counted, and does not stop the
 * others; the next sweep handles it again. When the sweep's time is used up, it stops after the current rows, and the
 * next round continues behind them.
 */
export async function sweepEach<Row extends Waiting>(sweep: Sweep<Row>): Promise<SweepReport> {
  using heartbeat = keepAlive();
  const report: SweepReport = { looked: 0, reminded: 0, started: 0, ended: 0, failed: 0 };
  const list = sweep.list ?? '';
  const positions = sweepTime.getStore()?.positions;
  // The saved position is enough to read on: a page needs only the time and the id of the row before it.
  let after = positions?.get(list) as Row | undefined;
  positions?.delete(list);
  for (;;) {
    const rows = await sweep.page({ before: sweep.before, after });
    if (rows.length === 0) return report;
    const well = (await sweep.well?.(rows)) ?? new Set();
    for (let at = 0; at < rows.length; at += rowsAtOnce) {
      const some = rows.slice(at, at + rowsAtOnce);
      await Promise.all(some.map((row) => lookAt(row, well.has(row.id))));
      report.looked += some.length;
      after = some.at(-1);
      if (!heartbeat.cancelled.aborted) continue;
      if (!(heartbeat.cancelled.reason instanceof OutOfTime) || after === undefined) throw heartbeat.cancelled.reason;
      positions?.set(list, { id: after.id, since: after.since });
      return report;
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
export function asSwept(reached: Reached, done: 'started' | 'reminded'): Swept {
  return reached === 'reached' ? done : 'failed';
}

/**
 * Rows from before this time have waited long enough to be swept. The process that wrote a younger row is probably
 * about to start its workflow.
 */
export function graceBefore({ sweeper }: Pick<Config, 'sweeper'>): Date {
  return new Date(Date.now() - sweeper.graceSeconds * 1_000);
}

interface ActorSweep<Row extends Waiting & ActorReference> {
  /** The rows that want something done. */
  rows(database: Pick<Database, 'pool'>, page: OldestFirst<Row>): Promise<Row[]>;
  tell(row: ActorReference): Promise<Reached>;
  /** Which of the rows have a running workflow. Without it, all rows are told. */
  running?(rows: readonly Row[]): Promise<Set<Row>>;
  /** Whether an actor with a running workflow need not be told, since it does by itself what its row wants. */
  needsNoWord?(row: Row): boolean;
}

/**
 * The sweep of one kind of actor (workflows/actor.ts): tells those that want something done, which also starts them.
 */
export function sweepActors<Row extends Waiting & ActorReference>(
  { config, database, logger }: { config: Pick<Config, 'sweeper'>; database: Pick<Database, 'pool'>; logger: Logger },
  { rows, tell, running, needsNoWord = () => true }: ActorSweep<Row>,
): () => Promise<SweepReport> {
  return () =>
    sweepEach<Row>({
      logger,
      before: graceBefore(config),
      page: (page) => rows(database, page),
      async well(some) {
        const found = [...((await running?.(some)) ?? [])];
        return new Set(found.filter(needsNoWord).map(({ id }) => id));
      },
      look: async (row, isWell) => (isWell ? 'left' : asSwept(await tell(row), 'started')),
    });
}

/** A sweep that deletes rows older than their retention. `forget` returns the number of deleted rows. */
export function purgeOlder(
  retentionMs: number,
  forget: (before: Date, onBatch: () => void) => Promise<number>,
): () => Promise<number> {
  return async () => {
    using heartbeat = keepAlive();
    return await forget(new Date(Date.now() - retentionMs), () => heartbeat.cancelled.throwIfAborted());
  };
}
