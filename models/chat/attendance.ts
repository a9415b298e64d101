import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { requestStop } from './endTurn.ts';
import { chatModels } from './models.ts';
import type { TurnLog } from './turnLog/turnLog.ts';

/**
 * A turn of OpenAI's API stops when all its clients have left, unless one of them said that it comes back. The row of
 * its request counts the connections that wait for the answer, and says until when the turn is attended. Each
 * connection's process extends that time again and again, and only the last one that leaves shortens it. A process that
 * dies leaves the count too high, but extends the time no more, so the turn still stops if no client comes back.
 */
export interface Attendance {
  until: Date;
}

/** How long a turn runs on when the process that answered its client has died. Clients repeat their requests meanwhile. */
const attendedForMs = 120_000;
/** How long a turn runs on when its last client has closed the connection, for a client that repeats a broken request. */
export const leftForMs = 5_000;
/** How often the time is extended. */
export const renewEveryMs = 30_000;

const turnsPerSweep = 1_000;

type On = Pick<Database, 'pool'>;

/** A new connection's attendance. */
export function newAttendance(): Attendance {
  return { until: new Date(Date.now() + attendedForMs) };
}

/**
 * One more connection attends the turn. With undefined, its client comes back whenever it likes, and the turn never
 * stops for want of one.
 */
export async function attendAgain({ pool }: On, turnId: string, attendance: Attendance | undefined): Promise<void> {
  const sql = `UPDATE completion_requests SET attending = attending + 1, attended_until = ?
      WHERE turn_id = ? AND attended_until IS NOT NULL`;
  await execute(pool, sql, [attendance?.until ?? null, turnId]);
}

/** A connection still waits for the answer. */
export async function keepAttending({ pool }: On, turnId: string): Promise<void> {
  // Nothing if the last one has just left: its renewal may arrive late.
  const sql = `UPDATE completion_requests SET attended_until = ?
      WHERE turn_id = ? AND attending > 0 AND attended_until IS NOT NULL`;
  await execute(pool, sql, [newAttendance().until, turnId]);
}

/**
 * A connection was closed. If it was the last one, the turn is attended for a few seconds more. False if the turn never
 * stops for want of a client.
 */
export async function noteLeft({ pool }: On, turnId: string): Promise<boolean> {
  // The assignments run from left to right.
  const sql = `UPDATE completion_requests
      SET attended_until = IF(attending <= 1, ?, attended_until), attending = GREATEST(attending, 1) - 1
      WHERE turn_id = ? AND attended_until IS NOT NULL`;
  const until = new Date(Date.now() + leftForMs);
  return (await execute(pool, sql, [until, turnId])).affectedRows > 0;
}

/** Stops the turn if nobody attends it. A client that comes back later gets a new turn. */
export async function stopIfUnattended(
  deps: { database: Database; turnLog: TurnLog },
  turnId: string,
): Promise<'attended' | 'ended' | 'stopping'> {
  const isLeft = await transaction(deps.database, async (tx) => {
    const sql = 'SELECT turn_id FROM completion_requests WHERE turn_id = ? AND attended_until <= ? FOR UPDATE';
    const rows = await select(tx, sql, [turnId, new Date()]);
    if (rows.length === 0) return false;
    const where = { id: turnId, terminal: 0, stopRequestedAt: null };
    await chatModels(tx).Turn.update({ stopRequestedAt: new Date() }, { where, transaction: tx });
    return true;
  });
  return isLeft ? requestStop(deps, turnId) : 'attended';
}

/** Turns that nobody attends any more and that nobody has asked to stop. */
export async function unattendedTurns({ pool }: On): Promise<string[]> {
  const sql = `SELECT STRAIGHT_JOIN c.turn_id FROM turns t JOIN completion_requests c ON c.turn_id = t.id
      WHERE t.terminal = 0 AND t.status IN ('queued', 'running', 'waiting') AND t.stop_requested_at IS NULL
        AND c.attended_until <= ? LIMIT ?`;
  const rows = await select(pool, sql, [new Date(), turnsPerSweep]);
  return rows.map(({ turnId }) => String(turnId));
}
