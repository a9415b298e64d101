import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockComputer } from '../computers/computers.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { insertOwnLink } from './links.ts';
import { type DesktopRef, type DesktopSession, endCodeOf, findDesktop, getDesktop, knownEnd } from './session.ts';

/** The limit for one computer: each desktop uses about 100 MB of its memory. */
const mostAtOnce = 4;
/** X servers that people start by themselves begin at 0 or 1. */
const firstDisplay = 10;

const smallest = { width: 640, height: 480 };
const largest = { width: 3_840, height: 2_160 };

export interface Resolution {
  width: number;
  height: number;
}

export const defaultResolution = '1280x800';

/** Throws 400 `RESOLUTION_INVALID`. */
export function resolutionOf(text: string): Resolution {
  const [width = 0, height = 0] = text.split('x').map(Number);
  const isFine =
    /^[1-9]\d{2,3}x[1-9]\d{2,3}$/.test(text) &&
    width >= smallest.width &&
    height >= smallest.height &&
    width <= largest.width &&
    height <= largest.height;
  if (isFine) return { width, height };
  const detail = 'The resolution must be a width and a height such as 1280x800, from 640x480 to 3840x2160.';
  throw new DomainError('invalid', 'RESOLUTION_INVALID', detail, { errors: [{ pointer: '/resolution', detail }] });
}

/**
 * Orders a session on a computer that was just woken. False when a session with this id exists already, even an ended
 * one. Throws 404, 409 `COMPUTER_NOT_RUNNING`, 422 `TOO_MANY_DESKTOPS`.
 */
export async function createDesktop(
  database: Database,
  { spaceId, computerId, sessionId, width, height }: DesktopRef & Resolution,
  actor: Actor & { userId: string },
): Promise<boolean> {
  if ((await findDesktop(database, sessionId)) !== undefined) return false;
  return transaction(database, async (tx) => {
    // The lock on the computer’s row keeps two requests from taking the same display.
    const computer = await lockComputer(tx, spaceId, computerId);
    const open = await openOn(tx, computerId);
    if (open.some(({ id }) => id === sessionId)) return false;
    if (computer.status !== 'running' && computer.status !== 'starting') {
      throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer was stopped in the meantime. Try again.');
    }
    const beside = open.filter(({ generation }) => generation === computer.generation);
    if (beside.length >= mostAtOnce) {
      const detail = `A computer has at most ${mostAtOnce} desktop sessions at once. End one.`;
      throw new DomainError('unprocessable', 'TOO_MANY_DESKTOPS', detail);
    }
    const taken = new Set(beside.map(({ display }) => display));
    const now = new Date();
    let display = firstDisplay;
    while (taken.has(display)) display++;
    await insert(tx, 'desktop_sessions', {
      id: sessionId,
      spaceId,
      computerId,
      generation: computer.generation,
      display,
      width,
      height,
      status: 'starting',
      statusAt: now,
      createdBy: actor.userId,
      createdAt: now,
    });
    await insertOwnLink(tx, { sessionId, spaceId, createdBy: actor.userId });
    await appendAudit(tx, spaceId, actor, 'desktop.created', sessionId);
    return true;
  });
}

function openOn(tx: Transaction, computerId: string) {
  return select<Pick<DesktopSession, 'id' | 'display' | 'generation'>>(
    tx,
    "SELECT id, display, generation FROM desktop_sessions WHERE computer_id = ? AND status IN ('starting', 'running', 'ending')",
    [computerId],
  );
}

/** Orders the end of a session. An ended session stays as it is. Throws 404. */
export async function deleteDesktop(database: Database, ref: DesktopRef, actor: Actor): Promise<DesktopSession> {
  const session = await getDesktop(database, ref);
  // A session that ended with its computer keeps that reason, and no caller appears in the audit log.
  const code = endCodeOf(session);
  if (code !== undefined && session.status !== 'ending') await endDesktop(database, session.id, code);
  else
    await transaction(database, async (tx) => {
      if (await beginEnd(tx, ref.sessionId, 'DESKTOP_DELETED')) {
        await appendAudit(tx, ref.spaceId, actor, 'desktop.ended', ref.sessionId);
      }
    });
  return getDesktop(database, ref);
}

/** Begins the end of a session, whose workflow then kills its X server. False if it was ending already. */
export async function beginEnd(tx: Transaction, id: string, code: string): Promise<boolean> {
  const sql = `UPDATE desktop_sessions SET status = 'ending', status_at = ?, end_code = ?, ended_at = ?, controller = NULL
    WHERE id = ? AND status IN ('starting', 'running')`;
  const now = new Date();
  return (await execute(tx, sql, [now, code, now, id])).affectedRows > 0;
}

/** Records that a session has ended: no process of it runs. */
export async function endDesktop({ pool }: Pick<Database, 'pool'>, id: string, code: string): Promise<void> {
  const now = new Date();
  const sql = `UPDATE desktop_sessions SET status = 'ended', status_at = ?, end_code = COALESCE(end_code, ?),
      ended_at = COALESCE(ended_at, ?), controller = NULL WHERE id = ? AND status <> 'ended'`;
  await execute(pool, sql, [now, knownEnd(code), now, id]);
}

/** Notes the new size of a session's display. */
export async function noteSize(
  { pool }: Pick<Database, 'pool'>,
  id: string,
  { width, height }: Resolution,
): Promise<void> {
  await execute(pool, 'UPDATE desktop_sessions SET width = ?, height = ? WHERE id = ?', [width, height, id]);
}
