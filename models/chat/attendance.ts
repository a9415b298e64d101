import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { requestStop } from './endTurn.ts';
import { chatModels } from './models.ts';
import type { TurnLog } from './turnLog/turnLog.ts';

/**
 * A turn of OpenAI's API stops when its client has left, unless the client said that it comes back. The row of its
 * request says until when it is attended. The process that answers the client extends that time again and again, so the
 * turn also stops if that process dies and the client does not come back.
 */
export interface Attendance {
  /** Names the connection that attends the turn: a connection that closes late must not end the time of a newer one. */
  by: string;
  until: Date;
}

/** How long a turn runs on when the process that answered its client has died. Clients repeat their requests meanwhile. */
const attendedForMs = 120_000;
/** How long a turn runs on when its client has closed the connection, for a client that repeats a broken request. */
export const leftForMs = 5_000;
/** How often the time is extended. */
export const renewEveryMs = 30_000;

const turnsPerSweep = 1_000;

type On = Pick<Database, 'pool'>;

/** A new connection's attendance. */
export function attendanceOf(by: string): Attendance {
  return { by, until: new Date(Date.now() + attendedForMs) };
}

/**
 * Another connection attends the turn from now on. With undefined, its client comes back whenever it likes, and the
 * turn never stops for it.
 */
export async function attendAgain({ pool }: On, turnId: string, attendance: Attendance | undefined): Promise<void> {
  const { by = null, until = null } = attendance ?? {};
  const sql = `UPDATE completion_requests SET attended_by = ?, attended_until = ?
      WHERE turn_id = ? AND attended_until IS NOT NULL`;
  await execute(pool, sql, [by, until, turnId]);
}

/** Sets the end of the time that this connection attends the turn. False if another one does, or none has to. */
async function attendUntil({ pool }: On, turnId: string, by: string, until: Date): Promise<boolean> {
  const sql = `UPDATE completion_requests SET attended_until = ?
      WHERE turn_id = ? AND attended_by = ? AND attended_until IS NOT NULL`;
  return (await execute(pool, sql, [until, turnId, by])).affectedRows > 0;
}

export async function keepAttending(on: On, turnId: string, by: string): Promise<void> {
  await attendUntil(on, turnId, by, attendanceOf(by).until);
}

/** The connection was closed. True if the turn now stops soon, unless its client comes back. */
export async function noteLeft(on: On, turnId: string, by: string): Promise<boolean> {
  return attendUntil(on, turnId, by, new Date(Date.now() + leftForMs));
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
