import type { Transaction } from 'sequelize';
import type { Database } from '../../database/database.ts';
import { execute, insert, select } from '../../database/sql.ts';
import type { TurnStatus, UiChunk } from './chunks.ts';
import { type CommitListener, type CommittedSegment, decodeLines, encodeChunks, WriterFencedError } from './entry.ts';
import { TurnFolds } from './folds.ts';
import { GroupCommitter } from './groupCommitter.ts';
import { lastSeqOfTurn } from './tails.ts';
import { TurnWriter } from './turnWriter.ts';

interface FenceRow {
  epoch: number;
  terminal: number;
  lastSeq: number | null;
}

export interface SegmentRow {
  firstSeq: number;
  lastSeq: number;
  lines: string;
}

/** A turn's row and log position, as read by the transaction that holds its lock. */
export interface LockedTurn {
  id: string;
  nextSeq: number;
  terminal: number;
}

/** Columns of a turn's row that change with its log. */
export interface RowChanges {
  terminal?: 1;
  status?: TurnStatus;
  startedAt?: Date;
  endedAt?: Date;
  finishReason?: string | null;
  errorCode?: string | null;
  errorDetail?: string | null;
}

/** Bytes of chunks that one batch carries at most; MySQL's own default packet is 16 MiB or more everywhere. */
const maxBatchBytes = 4 * 1024 * 1024;
const segmentsAtOnce = 100;

/**
 * The turn log: a turn's chunks, numbered from 1 without a gap. A chunk is written either by a writer that streams
 * under an epoch, or by a transaction that changes the turn's state and appends its chunks in the same commit. Both
 * hold the lock of the turn's row, which is their fence; only the second kind updates the row.
 *
 * The next number follows the log's last one. `turns.next_seq` holds the next number as of the last change of state. A
 * process of an older version may trust that column and take a number twice; the segments' primary key then refuses the
 * second segment. `onCommit` is called after each commit, so readers never see uncommitted chunks.
 */
export class TurnLog {
  readonly #database: Database;
  readonly #committer: GroupCommitter;
  readonly #onCommit: CommitListener;
  /** The number of this process's writers for each turn. */
  readonly #writers = new Map<string, number>();
  readonly folds = new TurnFolds((...of) => this.eachAfter(...of));

  constructor(options: { database: Database; onCommit: CommitListener }) {
    this.#database = options.database;
    this.#onCommit = options.onCommit;
    this.#committer = new GroupCommitter({ ...options, maxBatchBytes });
  }

  /** A writer for the epoch that {@link takeEpoch} took, once that transaction is committed. The caller closes it. */
  writer(options: { turnId: string; epoch: number; nextSeq: number }): TurnWriter {
    const { turnId } = options;
    const writer = new TurnWriter({ ...options, wake: this.#committer.wake });
    this.#writers.set(turnId, (this.#writers.get(turnId) ?? 0) + 1);
    writer.signal.addEventListener('abort', () => {
      const others = (this.#writers.get(turnId) ?? 1) - 1;
      if (others === 0) this.#writers.delete(turnId);
      else this.#writers.set(turnId, others);
    });
    return writer;
  }

  /** Whether this process has a writer for the turn, so that its readers learn of commits directly. */
  isWritten(turnId: string): boolean {
    return this.#writers.has(turnId);
  }

  /**
   * Takes the turn's next epoch within `tx` and so fences off every earlier writer. Undefined if the turn has ended.
   */
  async takeEpoch(tx: Transaction, turnId: string): Promise<{ epoch: number; nextSeq: number } | undefined> {
    const taken = await execute(tx, 'UPDATE turns SET writer_epoch = writer_epoch + 1 WHERE id = ? AND terminal = 0', [
      turnId,
    ]);
    if (taken.affectedRows === 0) return undefined;
    const [fence] = await select<{ epoch: number; lastSeq: number | null }>(
      tx,
      `SELECT writer_epoch AS epoch, (${lastSeqOfTurn}) AS lastSeq FROM turns WHERE id = ?`,
      [turnId],
    );
    return fence && { epoch: fence.epoch, nextSeq: (fence.lastSeq ?? 0) + 1 };
  }

  /**
   * Appends within a transaction that also changes the turn's state, so the chunks are written exactly once. With an
   * `epoch`, these are that writer's last chunks; throws {@link WriterFencedError} if the epoch is old. Pass the
   * returned segment to {@link announce} after the commit.
   */
  async appendIn(
    tx: Transaction,
    turnId: string,
    chunks: UiChunk[],
    { epoch }: { epoch?: number } = {},
  ): Promise<CommittedSegment> {
    const fence = await this.#lock(tx, turnId);
    const outdated = epoch !== undefined && fence?.epoch !== epoch;
    if (fence === undefined || outdated) throw new WriterFencedError(turnId);
    const turn = { id: turnId, nextSeq: (fence.lastSeq ?? 0) + 1, terminal: fence.terminal };
    return this.appendLocked(tx, turn, chunks, { epoch });
  }

  /**
   * Like {@link appendIn}, for a turn whose row `tx` has locked and read. Other changes of that row go into the same
   * statement. `changes.terminal` ends the log.
   */
  async appendLocked(
    tx: Transaction,
    turn: LockedTurn,
    chunks: UiChunk[],
    { epoch = 0, changes = {} }: { epoch?: number | undefined; changes?: RowChanges } = {},
  ): Promise<CommittedSegment> {
    if (turn.terminal === 1) throw new WriterFencedError(turn.id);
    const firstSeq = turn.nextSeq;
    const lastSeq = firstSeq + chunks.length - 1;
    const lines = encodeChunks(chunks);
    await insert(tx, 'turn_segments', {
      turnId: turn.id,
      firstSeq,
      lastSeq,
      writerEpoch: epoch,
      chunks: lines,
    });
    await execute(tx, 'UPDATE turns SET ? WHERE id = ?', [{ ...changes, nextSeq: lastSeq + 1 }, turn.id]);
    return { turnId: turn.id, firstSeq, lastSeq, lines, rests: changes.terminal === 1 || changes.status === 'waiting' };
  }

  /** Delivers a segment to this process's readers after its transaction has committed. */
  announce(segment: CommittedSegment): void {
    this.#onCommit(segment);
  }

  /** Segments that hold chunks after `afterSeq`, oldest first, at most `limit` of them. */
  async read(turnId: string, afterSeq: number, limit = segmentsAtOnce, tx?: Transaction): Promise<SegmentRow[]> {
    // The primary key finds the place: the segment that holds afterSeq + 1 begins there or before.
    const sql = `SELECT first_seq, last_seq, chunks AS \`lines\` FROM turn_segments
      WHERE turn_id = ? AND last_seq > ? AND first_seq >= COALESCE(
        (SELECT MAX(first_seq) FROM turn_segments WHERE turn_id = ? AND first_seq <= ?), 0)
      ORDER BY first_seq LIMIT ?`;
    const values = [turnId, afterSeq, turnId, afterSeq + 1, limit];
    if (tx !== undefined) return select<SegmentRow>(tx, sql, values);
    return select<SegmentRow>(this.#database.pool, sql, values);
  }

  /**
   * Calls `tell` for each chunk after `afterSeq`, in order. Reads a limited number of segments at a time, since a log
   * may be long. Returns the last number.
   */
  async eachAfter(
    turnId: string,
    afterSeq: number,
    tell: (chunk: UiChunk, length: number) => void,
    tx?: Transaction,
  ): Promise<number> {
    for (let position = afterSeq; ; ) {
      const segments = await this.read(turnId, position, segmentsAtOnce, tx);
      for (const { lines } of segments) {
        const chunks = [...decodeLines(lines)];
        for (const chunk of chunks) tell(chunk, lines.length / chunks.length);
      }
      const last = segments.at(-1);
      position = last?.lastSeq ?? position;
      if (segments.length < segmentsAtOnce) return position;
    }
  }

  async close(): Promise<void> {
    await this.#committer.close();
  }

  async #lock(tx: Transaction, turnId: string): Promise<FenceRow | undefined> {
    // The last segment is locked together with the turn, so it is current once the lock is held.
    const sql = `SELECT t.writer_epoch AS epoch, t.terminal, s.last_seq
      FROM turns t LEFT JOIN turn_segments s ON s.turn_id = t.id
      WHERE t.id = ? ORDER BY s.first_seq DESC LIMIT 1 FOR UPDATE`;
    const [fence] = await select<FenceRow>(tx, sql, [turnId]);
    return fence;
  }
}
