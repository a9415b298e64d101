import type { PoolConnection } from 'mysql2/promise';
import type { Database } from '../../database/database.ts';
import { execute, select } from '../../database/sql.ts';
import { commitAlone, isSegment, nameOf } from './commitAlone.ts';
import type { CommitListener } from './entry.ts';
import type { PendingSegment, TurnWriter } from './turnWriter.ts';

/**
 * Time limit for one statement of a batch. These statements never wait for a lock. All turns of the process wait behind
 * a frozen connection, so it is replaced after this time. The log then tells which segments had arrived.
 */
const commitSilenceMs = 5_000;

/**
 * Adaptive group commit: one loop per process writes what all its turns have gathered, and begins again as soon as the
 * last commit is done, without a timer. So a lone stream does not wait, and a hundred streams share each commit's
 * fsync.
 *
 * A batch is one statement. It locks the fences `(writer_epoch, terminal)` of its turns and inserts the segments whose
 * fences match. It does not write the turns' rows, so the database's logs grow only by the segments. If a
 * turn's row is locked or its fence has moved, its segment leaves the batch and is committed alone, beside the loop: no
 * turn waits for the lock of another, or fails with it.
 */
export class GroupCommitter {
  readonly #database: Database;
  readonly #onCommit: CommitListener;
  readonly #maxBatchBytes: number;
  #waiting = new Set<TurnWriter>();
  #running: Promise<void> | undefined;
  #connection: PoolConnection | undefined;
  #usedAtMs = 0;

  constructor(options: { database: Database; onCommit: CommitListener; maxBatchBytes: number }) {
    this.#database = options.database;
    this.#onCommit = options.onCommit;
    this.#maxBatchBytes = options.maxBatchBytes;
  }

  /** A writer has something to commit. */
  readonly wake = (writer: TurnWriter): void => {
    this.#waiting.add(writer);
    this.#running ??= this.#run();
  };

  /** Waits for the batch under way and gives the connection back. */
  async close(): Promise<void> {
    await this.#running;
    this.#connection?.release();
    this.#connection = undefined;
  }

  async #run(): Promise<void> {
    // Wait for the end of this iteration of the event loop, so that all chunks of one network read share one commit.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.size > 0) {
      const batch = this.#takeBatch();
      if (batch.length > 0) await this.#commit(batch);
    }
    this.#running = undefined;
  }

  #takeBatch(): PendingSegment[] {
    const batch: PendingSegment[] = [];
    let bytes = 0;
    for (const writer of this.#waiting) {
      if (bytes >= this.#maxBatchBytes) break;
      this.#waiting.delete(writer);
      const segment = writer.take();
      if (segment === undefined) continue;
      if (segment.bytes > this.#maxBatchBytes) {
        // One huge segment could make the whole packet fail, with its neighbours.
        void this.#commitAlone(segment, false);
        continue;
      }
      batch.push(segment);
      bytes += segment.bytes;
    }
    return batch;
  }

  async #commit(batch: PendingSegment[]): Promise<void> {
    let landed: Set<PendingSegment> | undefined;
    try {
      const connection = await this.#connect();
      landed = await this.#soon(connection, () => commitTogether(connection, batch));
    } catch {
      // The outcome is unknown: drop the connection, with the statement that may still run on it.
      this.#connection?.destroy();
      this.#connection = undefined;
    }
    for (const segment of batch) {
      if (landed?.has(segment)) this.#succeeded(segment, segment.firstSeq);
      else void this.#commitAlone(segment, landed === undefined);
    }
  }

  /** One connection for all batches. */
  async #connect(): Promise<PoolConnection> {
    const idleMs = performance.now() - this.#usedAtMs;
    this.#usedAtMs += idleMs;
    if (this.#connection !== undefined && idleMs < this.#database.idleMs) return this.#connection;
    this.#connection?.end().catch(() => undefined);
    this.#connection = await this.#database.pool.getConnection();
    return this.#connection;
  }

  #soon<T>(connection: PoolConnection, work: () => Promise<T>): Promise<T> {
    return this.#database.within(connection, Math.min(commitSilenceMs, this.#database.silenceMs), work);
  }

  async #commitAlone(segment: PendingSegment, tried: boolean): Promise<void> {
    try {
      this.#succeeded(
        segment,
        await commitAlone(this.#database.pool, segment, { tried, maxBytes: this.#maxBatchBytes }),
      );
    } catch (error) {
      segment.writer.fail(error as Error);
    }
  }

  #succeeded(segment: PendingSegment, firstSeq: number): void {
    const lastSeq = firstSeq + (segment.lastSeq - segment.firstSeq);
    this.#onCommit({ turnId: segment.writer.turnId, firstSeq, lastSeq, lines: segment.lines, rests: false });
    segment.writer.committed(lastSeq);
  }
}

/**
 * Locks the fence: until the commit, no other transaction takes an epoch or ends the turn. The lock is shared because
 * the row is not written. MySQL's binary log names each table that a statement might write, and that would be a quarter
 * of a token's commit. MySQL and MariaDB have no common syntax for this lock before SKIP LOCKED, so each server reads
 * its own form and takes the other one for a comment.
 */
const shared = '/*!80000 FOR SHARE */ /*M!100600 LOCK IN SHARE MODE */';

/** Commits the segments whose fences match and can be locked at once, and returns them. */
async function commitTogether(connection: PoolConnection, batch: PendingSegment[]): Promise<Set<PendingSegment>> {
  const ids = batch.map(({ writer }) => writer.turnId);
  // SQL that picks each turn's own value.
  const cases = `CASE id ${'WHEN ? THEN ? '.repeat(batch.length)}END`;
  const valuesOf = (value: (segment: PendingSegment) => unknown) =>
    batch.flatMap((segment) => [segment.writer.turnId, value(segment)]);
  const { affectedRows } = await execute(
    connection,
    `INSERT INTO turn_segments (turn_id, first_seq, last_seq, writer_epoch, chunks)
      SELECT id, ${cases}, ${cases}, writer_epoch, ${cases} FROM turns
      WHERE id IN (?) AND terminal = 0 AND writer_epoch = ${cases} ${shared} SKIP LOCKED`,
    [
      ...valuesOf(({ firstSeq }) => firstSeq),
      ...valuesOf(({ lastSeq }) => lastSeq),
      ...valuesOf(({ lines }) => lines),
      ids,
      ...valuesOf(({ writer }) => writer.epoch),
    ],
  );
  if (affectedRows === batch.length) return new Set(batch);
  const sql = `SELECT turn_id FROM turn_segments WHERE ${batch.map(() => isSegment).join(' OR ')}`;
  const rows = await select(connection, sql, batch.flatMap(nameOf));
  const landed = new Set(rows.map(({ turnId }) => turnId as string));
  return new Set(batch.filter(({ writer }) => landed.has(writer.turnId)));
}
