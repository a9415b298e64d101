import type { PoolConnection, RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database.ts';
import { commitAlone } from './commitAlone.ts';
import type { CommitListener } from './entry.ts';
import type { PendingSegment, TurnWriter } from './turnWriter.ts';

interface Fence extends RowDataPacket {
  id: string;
  writer_epoch: number;
  next_seq: number;
}

/**
 * How long the server may say nothing to a statement of a batch, none of which waits for a lock. All turns of the
 * process wait for a connection that has frozen; after this it is replaced, and the fences say what had arrived.
 */
const commitSilenceMs = 5_000;

/**
 * Adaptive group commit: one loop per process writes what all its turns have gathered, and begins again as soon as the
 * last commit is done, with no timer. So a lone stream does not wait, and a hundred share each commit's fsync.
 *
 * A batch locks the fences `(writer_epoch, next_seq, terminal)` of its turns, moves those that are as their writers
 * believe, and inserts their segments. A turn whose row is locked by somebody else, or whose fence has moved, leaves
 * the batch and is committed alone, beside the loop: no turn waits for another's lock, or shares its failure.
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
    let matched: Set<PendingSegment> | undefined;
    try {
      const connection = await this.#connect();
      matched = await this.#soon(connection, () => commitTogether(connection, batch));
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

  /** One connection for all batches, without autocommit: each begins its transaction with its first statement. */
  async #connect(): Promise<PoolConnection> {
    const idleMs = performance.now() - this.#usedAtMs;
    this.#usedAtMs += idleMs;
    if (this.#connection !== undefined && idleMs < this.#database.idleMs) return this.#connection;
    this.#connection?.destroy();
    const connection = await this.#database.pool.getConnection();
    try {
      await this.#soon(connection, () => connection.query('SET autocommit = 0'));
    } catch (error) {
      connection.destroy();
      throw error;
    }
    this.#connection = connection;
    return connection;
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

/** Commits those segments whose fences match and can be locked at once, and returns them. */
async function commitTogether(connection: PoolConnection, batch: PendingSegment[]): Promise<Set<PendingSegment>> {
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
    await connection.query('INSERT INTO turn_segments (turn_id, first_seq, last_seq, writer_epoch, chunks) VALUES ?', [
      matched.map(({ writer, firstSeq, lastSeq, lines }) => [writer.turnId, firstSeq, lastSeq, writer.epoch, lines]),
    ]);
  }
  await connection.query('COMMIT');
  return new Set(matched);
}
