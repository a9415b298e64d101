import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { computerOfSession, endCodeOnComputer, isOffComputer, type SessionOn } from '../computers/sessionOn.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';

/** For clients, a session that is `ending` or `saving` is over: its Chromium is closed, then its profile is saved. */
export type BrowserStatus = 'starting' | 'running' | 'ending' | 'saving' | 'ended';

/** A session: one run of a Chromium on a computer. */
export interface BrowserSession extends SessionOn {
  id: string;
  spaceId: string;
  /** Null for a session that keeps nothing. */
  profileId: string | null;
  /** Counts the sessions of its profile. An older session never saves over a newer one. */
  number: number;
  computerId: string;
  /** The desktop that shows it; null for a headless one. */
  desktopSessionId: string | null;
  display: number | null;
  width: number;
  height: number;
  /** The first page to open. */
  url: string | null;
  /** Why the first page did not open, in plain words. */
  urlCode: string | null;
  urlDetail: string | null;
  status: BrowserStatus;
  statusAt: Date;
  /** Whether its Chromium has run. If not, there is nothing to save. */
  wasStarted: boolean;
  savedAt: Date | null;
  /** Why its profile was not saved. */
  saveCode: string | null;
  downloadedFiles: number;
  downloadedBytes: number;
  /** Why some of its downloads are not in the drive. */
  downloadCode: string | null;
  createdBy: string;
  createdAt: Date;
  endedAt: Date | null;
}

/** Includes columns of the computer: a session never outlives it, even if the session's own row does not say so yet. */
const columns = `b.id, b.space_id, b.profile_id, b.number, b.computer_id, b.generation, b.desktop_session_id, b.display,
  b.width, b.height, b.url, b.url_code, b.url_detail, b.status, b.status_at, b.was_started, b.end_code, b.saved_at,
  b.save_code, b.downloaded_files, b.downloaded_bytes, b.download_code, b.created_by, b.created_at, b.ended_at,
  ${computerOfSession}`;

const tables = 'browser_sessions b LEFT JOIN computers c ON c.id = b.computer_id';

function read(row: object): BrowserSession {
  const session = row as Omit<BrowserSession, 'wasStarted'> & { wasStarted: unknown };
  return { ...session, wasStarted: session.wasStarted === 1, downloadedBytes: Number(session.downloadedBytes) };
}

export interface BrowserRef {
  spaceId: string;
  sessionId: string;
}

/** Throws 404. */
export async function getBrowser(database: Pick<Database, 'pool'>, ref: BrowserRef): Promise<BrowserSession> {
  const session = await findBrowser(database, ref.sessionId);
  if (session?.spaceId !== ref.spaceId) throw notFound('browser session');
  return session;
}

export async function findBrowser({ pool }: Pick<Database, 'pool'>, id: string): Promise<BrowserSession | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM ${tables} WHERE b.id = ?`, [id]);
  return row && read(row);
}

/** The sessions that use these profiles now. */
export async function liveSessions(
  { pool }: Pick<Database, 'pool'>,
  profileIds: readonly string[],
): Promise<BrowserSession[]> {
  if (profileIds.length === 0) return [];
  const sql = `SELECT ${columns} FROM ${tables} WHERE b.live_profile IN (?)`;
  const rows = await select(pool, sql, [profileIds]);
  return rows.map(read);
}

/** The session that uses a profile. The caller holds the lock on the profile. */
export async function liveSessionOf(tx: Transaction, profileId: string): Promise<BrowserSession | undefined> {
  const [row] = await select<object>(tx, `SELECT ${columns} FROM ${tables} WHERE b.live_profile = ?`, [profileId]);
  return row && read(row);
}

/** A space’s sessions, newest first. */
export async function listBrowsers(
  database: Pick<Database, 'pool'>,
  spaceId: string,
  page: PageRequest,
): Promise<Page<BrowserSession>> {
  const sql = `SELECT ${columns} FROM ${tables} WHERE b.space_id = ?`;
  return readPage(database, page, { sql, values: [spaceId], by: 'b.id', order: 'desc', read });
}

/** Whether a session is over: it has ended, is ending, or its computer has stopped or restarted since. */
export function hasEnded(session: BrowserSession): boolean {
  return !['starting', 'running'].includes(session.status) || isOffComputer(session);
}

/** Why a session has ended; undefined while it has not. */
export function endCodeOf(session: BrowserSession): string | undefined {
  return hasEnded(session) ? endCodeOnComputer(session) : undefined;
}

const details: Readonly<Record<string, string>> = {
  BROWSER_DELETED: 'A user ended the session.',
  COMPUTER_STOPPED: 'Its computer has stopped.',
  HOST_LOST: 'The host of its computer does not answer.',
  BROWSER_ENDED: 'The Chromium of the session has exited by itself.',
  DESKTOP_ENDED: 'The desktop on which it was shown has ended.',
  USER_DISABLED: 'The user who started the session can no longer sign in.',
  MEMBER_REMOVED: 'The user who started the session may no longer use the computers of this space.',
  BROWSERS_UNAVAILABLE:
    'This computer has no Chromium. Its environment must have it, as `agents` does; without an environment, the operator installs it (docs/browsers.md).',
  PROFILE_NOT_OPENED: 'The profile of the session could not be copied to the computer.',
  PROFILE_UNUSABLE: 'The folder of the session’s profile on the computer cannot be written.',
  NOT_STARTED: 'Its Chromium could not be started.',
};

/** The code to store for a session's end: always one that has a text here. */
export function knownEnd(code: string): string {
  if (code === 'COMPUTER_NOT_RUNNING') return 'COMPUTER_STOPPED';
  return Object.hasOwn(details, code) ? code : 'NOT_STARTED';
}

export function endDetailOf(code: string): string {
  return details[code] ?? '';
}

/** Why a session's first page did not open; null when it did, or when there was none. */
export function urlErrorOf({ urlCode, urlDetail }: BrowserSession): { code: string; detail: string } | null {
  return urlCode === null ? null : { code: urlCode, detail: urlDetail ?? '' };
}

/** The error names the session that uses the profile. Members of the space may list the sessions anyway. */
export function profileInUse(session: BrowserSession): DomainError {
  const { id, spaceId, createdBy } = session;
  const state = hasEnded(session)
    ? 'is ending and has not saved the profile yet. Try again in a moment'
    : 'uses this profile. End that session first';
  const who = `Session ${id}, started by ${createdBy},`;
  return new DomainError('conflict', 'PROFILE_IN_USE', `${who} ${state}.`, {
    errors: [{ pointer: 'profileId', detail: `is that of session ${id}` }],
    link: { rel: 'session', path: `/api/spaces/${spaceId}/browsers/sessions/${id}` },
    ...(hasEnded(session) && { retryAfterSeconds: 1 }),
  });
}
