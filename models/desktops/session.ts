import { notFound } from '../../base/errors.ts';
import { computerOfSession, endCodeOnComputer, isOffComputer, type SessionOn } from '../computers/sessionOn.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';

/** For clients, a session that is `ending` is over: its X server is being killed. */
export type DesktopStatus = 'starting' | 'running' | 'ending' | 'ended';

/** A virtual display on a computer. */
export interface DesktopSession extends SessionOn {
  id: string;
  spaceId: string;
  computerId: string;
  /** The number in `DISPLAY`. */
  display: number;
  width: number;
  height: number;
  status: DesktopStatus;
  statusAt: Date;
  /** Who may type in it, and until when. */
  controller: string | null;
  controllerUntil: Date | null;
  /** The recording that runs now. */
  recordingId: string | null;
  createdBy: string;
  createdAt: Date;
  endedAt: Date | null;
}

/** Includes columns of the computer: a session never outlives it, even if the session's own row does not say so yet. */
const columns = `d.id, d.space_id, d.computer_id, d.generation, d.display, d.width, d.height, d.status, d.status_at,
  d.end_code, d.controller, d.controller_until, d.created_by, d.created_at, d.ended_at, ${computerOfSession},
  (SELECT r.id FROM desktop_recordings r WHERE r.running_on = d.id) AS recordingId`;

const tables = 'desktop_sessions d LEFT JOIN computers c ON c.id = d.computer_id';

export interface DesktopRef {
  spaceId: string;
  computerId: string;
  sessionId: string;
}

/** Throws 404. */
export async function getDesktop(database: Pick<Database, 'pool'>, ref: DesktopRef): Promise<DesktopSession> {
  const session = await findDesktop(database, ref.sessionId);
  if (session === undefined || session.spaceId !== ref.spaceId || session.computerId !== ref.computerId) {
    throw notFound('desktop session');
  }
  return session;
}

export async function findDesktop({ pool }: Pick<Database, 'pool'>, id: string): Promise<DesktopSession | undefined> {
  const [row] = await select<DesktopSession>(pool, `SELECT ${columns} FROM ${tables} WHERE d.id = ?`, [id]);
  return row;
}

/** The newest session of a computer that has not ended. */
export async function newestOpenDesktop(
  { pool }: Pick<Database, 'pool'>,
  computerId: string,
): Promise<DesktopSession | undefined> {
  const rows = await select<DesktopSession>(
    pool,
    `SELECT ${columns} FROM ${tables} WHERE d.computer_id = ? AND d.status IN ('starting', 'running') ORDER BY d.id DESC`,
    [computerId],
  );
  return rows.find((session) => !hasEnded(session));
}

/** A computer’s sessions, newest first. */
export async function listDesktops(
  database: Pick<Database, 'pool'>,
  computerId: string,
  page: PageRequest,
): Promise<Page<DesktopSession>> {
  const sql = `SELECT ${columns} FROM ${tables} WHERE d.computer_id = ?`;
  return readPage(database, page, { sql, values: [computerId], by: 'd.id', order: 'desc' });
}

/** Whether a session is over: it has ended, is ending, or its computer has stopped or restarted since. */
function hasEnded(session: DesktopSession): boolean {
  return session.status === 'ending' || session.status === 'ended' || isOffComputer(session);
}

/** Why a session has ended; undefined while it has not. */
export function endCodeOf(session: DesktopSession): string | undefined {
  return hasEnded(session) ? endCodeOnComputer(session) : undefined;
}

const details: Readonly<Record<string, string>> = {
  DESKTOP_DELETED: 'A user ended the session.',
  COMPUTER_STOPPED: 'Its computer has stopped.',
  HOST_LOST: 'The host of its computer does not answer.',
  X_SERVER_ENDED: 'The X server of the session has exited by itself.',
  DESKTOPS_UNAVAILABLE: 'This computer has no X server. The operator must install TigerVNC; see docs/desktops.md.',
  DESKTOP_NOT_STARTED: 'Its X server could not be started.',
};

/** The code to store for a session's end: always one that has a text here. */
export function knownEnd(code: string): string {
  return Object.hasOwn(details, code) ? code : 'DESKTOP_NOT_STARTED';
}

export function endDetailOf(code: string): string {
  return details[code] ?? '';
}
