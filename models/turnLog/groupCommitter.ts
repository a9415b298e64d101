import type { Pool, PoolConnection, RowDataPacket } from 'mysql2/promise';
import { idleConnectionMs } from '../database.ts';
import { commitAlone } from './commitAlone.ts';
import type { CommitListener } from './entry.ts';
import type { PendingSegment, TurnWriter } from './turnWriter.ts';

interface Fence extends RowDataPacket {
  id: string;
  writer_epoch: number;
  next_seq: number;
}

/**
 * Adaptive group commit: one loop per process writes what all its turns have gathered, and begins again as soon as
 * the last commit is done, with no timer. So a lone stream waits for nobody, and a hundred share each commit's fsync.
 *
 * A batch locks the fences `(writer_epoch, next_seq, terminal)` of its turns, moves those that are as their writers believe,
 * and inserts their segments. A turn whose row is locked by somebody else, or whose fence has moved, leaves the batch and is
 * committed alone, beside the loop: no turn waits for another's lock, or shares its failure.
 */
export class GroupCommitter {
  readonly #pool: Pool;
  readonly #onCommit: CommitListener;
  readonly #maxBatchBytes: number;
  #waiting = new Set<TurnWriter>();
  #running: Promise<void> | undefined;
  #connection: PoolConnection | undefined;
  #usedAtMs = 0;

  constructor(options: { pool: Pool; onCommit: CommitListener; maxBatchBytes: number }) {
    this.#pool = options.pool;
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
    let matched: Set<PendingSegment> | undefined;
    try {
      matched = await this.#commitTogether(batch);
    } catch {
      // Unknown state: the connection goes, and with it whatever it had open.
      this.#connection?.destroy();
      this.#connection = undefined;
    }
    for (const segment of batch) {
      if (matched?.has(segment)) this.#succeeded(segment, segment.firstSeq);
      else void this.#commitAlone(segment, matched === undefined);
    }
  }

  /** Commits those segments whose fences match and can be locked at once, and returns them. */
  async #commitTogether(batch: PendingSegment[]): Promise<Set<PendingSegment>> {
    const connection = await this.#connect();
    const [fences] = await connection.query<Fence[]>(
      'SELECT id, writer_epoch, next_seq FROM turns WHERE id IN (?) AND terminal = 0 FOR UPDATE SKIP LOCKED',
      [batch.map(({ writer }) => writer.turnId)],
    );
    const fenceOf = new Map(fences.map((fence) => [fence.id, fence]));
    const matched = batch.filter(({ writer, firstSeq }) => {
      const fence = fenceOf.get(writer.turnId);
      return fence?.writer_epoch === writer.epoch && fence.next_seq === firstSeq;
    });
    if (matched.length > 0) {
      await connection.query(
        `UPDATE turns SET next_seq = CASE id ${'WHEN ? THEN ? '.repeat(matched.length)} END WHERE id IN (?)`,
        [
          ...matched.flatMap(({ writer, lastSeq }) => [writer.turnId, lastSeq + 1]),
          matched.map(({ writer }) => writer.turnId),
        ],
      );
      await connection.query(
        'INSERT INTO turn_segments (turn_id, first_seq, last_seq, writer_epoch, chunks) VALUES ?',
        [
          matched.map(({ writer, firstSeq, lastSeq, lines }) => [
            writer.turnId,
            firstSeq,
            lastSeq,
            writer.epoch,
            lines,
          ]),
        ],
      );
    }
    await connection.query('COMMIT');
    return new Set(matched);
  }

  /** One connection for all batches, without autocommit: each begins its transaction with its first statement. */
  async #connect(): Promise<PoolConnection> {
    const idleMs = performance.now() - this.#usedAtMs;
    this.#usedAtMs += idleMs;
    if (this.#connection !== undefined && idleMs < idleConnectionMs) return this.#connection;
    this.#connection?.destroy();
    const connection = await this.#pool.getConnection();
    try {
      await connection.query('SET autocommit = 0');
    } catch (error) {
      connection.destroy();
      throw error;
    }
    this.#connection = connection;
    return connection;
  }

  async #commitAlone(segment: PendingSegment, tried: boolean): Promise<void> {
    try {
      this.#succeeded(segment, await commitAlone(this.#pool, segment, { tried, maxBytes: this.#maxBatchBytes }));
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
