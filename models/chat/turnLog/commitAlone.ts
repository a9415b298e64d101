import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, PoolConnection } from 'mysql2/promise';
import { execute, select } from '../../database/sql.ts';
import { cannotBeStored } from '../../database/unstorable.ts';
import { SegmentTooLargeError, WriterFencedError } from './entry.ts';
import { lastSeqSql } from './tails.ts';
import type { PendingSegment } from './turnWriter.ts';

/**
 * How long a writer tolerates a database that restarts or freezes. After that its activity fails, and another worker
 * repeats the model call. It is longer than the server keeps the locks of a frozen connection (30 s).
 */
const giveUpAfterMs = 45_000;
const firstRetryMs = 5;
const longestRetryMs = 500;

interface Fence {
  writerEpoch: number;
  terminal: number;
}

/** An epoch belongs to one writer, and a writer has one segment in flight, so these numbers identify a segment. */
export const isSegment = '(turn_id = ? AND first_seq = ? AND last_seq = ? AND writer_epoch = ?)';

export function nameOf({ writer, firstSeq, lastSeq }: PendingSegment): unknown[] {
  return [writer.turnId, firstSeq, lastSeq, writer.epoch];
}

/**
 * Commits one segment by itself and returns its first sequence number, which has moved if another transaction (a tool's
 * result, say) wrote to the turn meanwhile. A segment that was `tried` before is looked up first: its COMMIT may have
 * arrived although the answer did not, and it must not be in the log twice.
 */
export async function commitAlone(
  pool: Pool,
  segment: PendingSegment,
  options: { tried: boolean; maxBytes: number },
): Promise<number> {
  const { turnId } = segment.writer;
  const startedAtMs = performance.now();
  let tried = options.tried;
  let retryMs = firstRetryMs;
  for (;;) {
    let connection: PoolConnection | undefined;
    try {
      connection = await pool.getConnection();
      const firstSeq = await commitOnce(connection, segment, tried);
      connection.release();
      return firstSeq;
    } catch (error) {
      connection?.destroy();
      if (error instanceof WriterFencedError) throw error;
      if (cannotBeStored(error) || segment.bytes > options.maxBytes * 4) {
        throw new SegmentTooLargeError(turnId, segment.bytes);
      }
      if (performance.now() - startedAtMs > giveUpAfterMs) throw error;
    }
    tried = true;
    await delay(retryMs * (0.5 + Math.random()));
    retryMs = Math.min(retryMs * 2, longestRetryMs);
  }
}

async function commitOnce(connection: PoolConnection, segment: PendingSegment, tried: boolean): Promise<number> {
  const { writer, lines } = segment;
  const count = segment.lastSeq - segment.firstSeq + 1;
  await execute(connection, 'START TRANSACTION');
  const [fence] = await select<Fence>(connection, 'SELECT writer_epoch, terminal FROM turns WHERE id = ? FOR UPDATE', [
    writer.turnId,
  ]);
  if (tried) {
    const landedAt = await findLanded(connection, segment);
    if (landedAt !== undefined) {
      await execute(connection, 'ROLLBACK');
      return landedAt;
    }
  }
  if (fence === undefined || fence.terminal === 1 || fence.writerEpoch !== writer.epoch) {
    await execute(connection, 'ROLLBACK');
    throw new WriterFencedError(writer.turnId);
  }
  const ends = await select(connection, lastSeqSql, [writer.turnId]);
  const firstSeq = ((ends[0]?.lastSeq as number | undefined) ?? 0) + 1;
  // Set before the COMMIT, whose answer may be lost: a retry looks the segment up here.
  segment.firstSeq = firstSeq;
  segment.lastSeq = firstSeq + count - 1;
  const sql = 'INSERT INTO turn_segments (turn_id, first_seq, last_seq, writer_epoch, chunks) VALUES (?, ?, ?, ?, ?)';
  await execute(connection, sql, [writer.turnId, firstSeq, segment.lastSeq, writer.epoch, lines]);
  await execute(connection, 'COMMIT');
  return firstSeq;
}

async function findLanded(connection: PoolConnection, segment: PendingSegment): Promise<number | undefined> {
  const rows = await select(connection, `SELECT 1 FROM turn_segments WHERE ${isSegment}`, nameOf(segment));
  return rows.length > 0 ? segment.firstSeq : undefined;
}
