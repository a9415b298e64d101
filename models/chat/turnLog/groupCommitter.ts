import type { PoolConnection, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import type { Database } from '../../database/database.ts';
import { commitAlone, isSegment, nameOf } from './commitAlone.ts';
import type { CommitListener } from './entry.ts';
import type { PendingSegment, TurnWriter } from './turnWriter.ts';

/**
 * How long the server may say nothing to a statement of a batch, none of which waits for a lock. All turns of the
 * process wait for a connection that has frozen; after this it is replaced, and the fences say what had arrived.
 */
const commitSilenceMs = 5_000;

/**
 * Adaptive group commit: one loop per process writes what all its turns have gathered, and begins again as soon as the
 * last commit is done, with no timer. So a lone stream does not wait, and a hundred share each commit's fsync.
 *
 * A batch is one statement. It locks the fences `(writer_epoch, terminal)` of its turns and inserts the segments of
 * those that are as their writers believe; the rows of the turns are not written, so a token costs no more than itself
 * in the logs of the database. A turn whose row is locked by somebody else, or whose fence has moved, leaves the batch
 * and is committed alone, beside the loop: no turn waits for another's lock, or shares its failure.
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
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  async #run(): Promise<void> {
    // After this turn of the event loop, so that what one network read brought goes in one commit.
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
        // It would take the whole packet, and its neighbours, down with it.
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
      // Unknown state: the connection goes, and with it whatever it was doing.
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
    this.#connection?.destroy();
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
 * The fence's lock: nobody takes an epoch or ends the turn until the commit. It is shared because nothing is written
 * through it, and MySQL's binary log names each table that a statement might write, a quarter of a token's commit. MySQL
 * and MariaDB have no common words for it that SKIP LOCKED may follow, so each runs its own and takes the other's for a
 * comment.
 */
const shared = '/*!80000 FOR SHARE */ /*M!100600 LOCK IN SHARE MODE */';

/** Commits those segments whose fences match and can be locked at once, and returns them. */
async function commitTogether(connection: PoolConnection, batch: PendingSegment[]): Promise<Set<PendingSegment>> {
  const ids = batch.map(({ writer }) => writer.turnId);
  // Which of the batch's values a turn's row takes.
  const cases = `CASE id ${'WHEN ? THEN ? '.repeat(batch.length)}END`;
  const valuesOf = (value: (segment: PendingSegment) => unknown) =>
    batch.flatMap((segment) => [segment.writer.turnId, value(segment)]);
  const [{ affectedRows }] = await connection.query<ResultSetHeader>(
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
  const [rows] = await connection.query<RowDataPacket[]>(
    `SELECT turn_id AS turnId FROM turn_segments WHERE ${batch.map(() => isSegment).join(' OR ')}`,
    batch.flatMap(nameOf),
  );
  const landed = new Set(rows.map(({ turnId }) => turnId as string));
  return new Set(batch.filter(({ writer }) => landed.has(writer.turnId)));
}
