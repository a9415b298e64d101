import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Computer, limitsOf } from '../computers/computer.ts';
import { lockComputer } from '../computers/computers.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type DesktopSession, getDesktop } from '../desktops/session.ts';
import type { Resolution } from '../desktops/sessions.ts';
import { noteFolder } from './folders.ts';
import { lockProfile } from './profile.ts';
import {
  type BrowserRef,
  type BrowserSession,
  endCodeOf,
  findBrowser,
  getBrowser,
  liveSessionOf,
  profileInUse,
} from './session.ts';

/** The memory and tasks that a Chromium with a few pages uses. */
const memoryMiBOfOne = 512;
const tasksOfOne = 160;

export interface NewBrowser extends BrowserRef, Resolution {
  computerId: string;
  profileId: string | undefined;
  desktopSessionId: string | undefined;
  url: string | undefined;
}

type Deps = { database: Database; config: Pick<Config, 'computers'> };

/**
 * Orders a session on a computer that was just woken. False when a session with this id exists already, even an ended
 * one. Throws 404, 409 `COMPUTER_NOT_RUNNING`, `DESKTOP_NOT_RUNNING` or `PROFILE_IN_USE`, 422 `TOO_MANY_BROWSERS`.
 */
export async function createBrowser(
  { database, config }: Deps,
  fields: NewBrowser,
  actor: Actor & { userId: string },
): Promise<boolean> {
  const { sessionId, spaceId, computerId, profileId = null, url = null } = fields;
  if ((await findBrowser(database, sessionId)) !== undefined) return false;
  const desktop = await desktopFor(database, fields);
  return transaction(database, async (tx) => {
    // The lock on the computer’s row keeps two requests from passing the limit together.
    const computer = await lockComputer(tx, spaceId, computerId);
    const open = await openOn(tx, computerId);
    if (open.some(({ id }) => id === sessionId)) return false;
    if (computer.status !== 'running' && computer.status !== 'starting') {
      throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer was stopped in the meantime. Try again.');
    }
    requireRoom(open.filter(({ generation }) => generation === computer.generation).length, computer, config);
    const number = profileId === null ? 0 : await takeProfile(tx, { spaceId, profileId });
    const now = new Date();
    await insert(tx, 'browser_sessions', {
      id: sessionId,
      spaceId,
      profileId,
      liveProfile: profileId,
      number,
      computerId,
      generation: computer.generation,
      desktopSessionId: desktop?.id ?? null,
      display: desktop?.display ?? null,
      width: desktop?.width ?? fields.width,
      height: desktop?.height ?? fields.height,
      url,
      status: 'starting',
      statusAt: now,
      wasStarted: 0,
      downloadedFiles: 0,
      downloadedBytes: 0,
      createdBy: actor.userId,
      createdAt: now,
    });
    await noteFolder(tx, { spaceId, ownerId: sessionId, computerId });
    if (profileId !== null) await noteFolder(tx, { spaceId, ownerId: profileId, computerId });
    await appendAudit(tx, spaceId, actor, 'browser.started', sessionId);
    return true;
  });
}

async function desktopFor(
  database: Database,
  { spaceId, computerId, desktopSessionId }: NewBrowser,
): Promise<DesktopSession | undefined> {
  if (desktopSessionId === undefined) return undefined;
  const desktop = await getDesktop(database, { spaceId, computerId, sessionId: desktopSessionId });
  if (desktop.status === 'running') return desktop;
  throw new DomainError('conflict', 'DESKTOP_NOT_RUNNING', 'The desktop session has ended, or is still starting.');
}

function openOn(tx: Transaction, computerId: string) {
  return select<Pick<BrowserSession, 'id' | 'generation'>>(
    tx,
    "SELECT id, generation FROM browser_sessions WHERE computer_id = ? AND status IN ('starting', 'running', 'ending')",
    [computerId],
  );
}

function requireRoom(there: number, computer: Computer, config: Deps['config']): void {
  const { memoryMiB } = limitsOf(computer, config);
  const byTasks = Math.floor(config.computers.maxTasks / tasksOfOne);
  const most = Math.min(Math.floor(memoryMiB / memoryMiBOfOne), byTasks);
  if (there < most) return;
  const detail = `This computer can run ${most} browser sessions at once. End one, or give the computer more memory.`;
  throw new DomainError('unprocessable', 'TOO_MANY_BROWSERS', detail);
}

/** Gives a profile to a new session, and returns the session's number. */
async function takeProfile(tx: Transaction, ref: { spaceId: string; profileId: string }): Promise<number> {
  const { id, opened } = await lockProfile(tx, ref);
  const live = await liveSessionOf(tx, id);
  if (live !== undefined) throw profileInUse(live);
  await execute(tx, 'UPDATE browser_profiles SET opened = ? WHERE id = ?', [opened + 1, id]);
  return opened + 1;
}

/** Orders the end of a session. An ended session stays as it is. Throws 404. */
export async function deleteBrowser(database: Database, ref: BrowserRef, actor: Actor): Promise<BrowserSession> {
  const session = await getBrowser(database, ref);
  // A session that ended with its computer keeps that reason, and no caller appears in the audit log.
  const code = endCodeOf(session);
  await transaction(database, async (tx) => {
    const isFirst = await beginEnd(tx, session.id, code ?? 'BROWSER_DELETED');
    if (isFirst && code === undefined) await appendAudit(tx, ref.spaceId, actor, 'browser.ended', session.id);
  });
  return getBrowser(database, ref);
}

/** Begins the end of a session, whose workflow then closes its Chromium. False if it was ending already. */
export async function beginEnd(tx: Transaction, id: string, code: string): Promise<boolean> {
  const sql = `UPDATE browser_sessions SET status = 'ending', status_at = ?, end_code = ?, ended_at = ?, url = NULL
    WHERE id = ? AND status IN ('starting', 'running')`;
  const now = new Date();
  return (await execute(tx, sql, [now, code, now, id])).affectedRows > 0;
}

const protocols = new Set(['http:', 'https:']);

/**
 * Callers may send a tab to pages of the web and to an empty page. Chromium's policies refuse the other addresses when
 * a page leads there. Throws 422 `URL_REFUSED`.
 */
export function requireWebAddress(url: string): void {
  if (url === 'about:blank' || (URL.canParse(url) && protocols.has(new URL(url).protocol))) return;
  const detail = 'A browser can only open about:blank and addresses that begin with http:// or https://.';
  throw new DomainError('unprocessable', 'URL_REFUSED', detail, { errors: [{ pointer: '/url', detail }] });
}
