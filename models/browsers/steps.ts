import type { RowDataPacket } from 'mysql2/promise';
import { type Database, transaction } from '../database/database.ts';
import { endCodeOf as desktopEndOf, findDesktop } from '../desktops/session.ts';
import { type BrowserSession, endCodeOf, findBrowser, knownEnd } from './session.ts';
import { beginEnd } from './sessions.ts';

/** What a session’s workflow does next. */
export type BrowserStep =
  | { do: 'rest' }
  /** It runs, or cannot be ended yet; the workflow is told when something is to be done. */
  | { do: 'watch'; waitMs: number }
  /**
   * It is started; its downloads are put into the drive; its Chromium is closed; what it leaves is saved, which its last
   * downloads are part of.
   */
  | { do: 'start' | 'collect' | 'close' | 'save' };

/** How often somebody looks whether its Chromium lives, where nobody uses it. */
const watchMs = 10_000;
/** How often whether a computer has stopped. */
const stoppingMs = 500;
const watch: BrowserStep = { do: 'watch', waitMs: watchMs };

/** Says what is to be done next, and notes what has become of it. Asked again, it says the same. */
export async function nextBrowserStep(database: Database, id: string): Promise<BrowserStep> {
  const session = await endedIfUnwanted(database, id);
  if (session === undefined || session.status === 'ended') return { do: 'rest' };
  // A computer that stands still starts, ends and saves nothing.
  if (session.computerStatus === 'paused') return watch;
  // One that stops closes its browsers first: what they leave is whole when it has stopped.
  if (session.computerStatus === 'stopping') return { do: 'watch', waitMs: stoppingMs };
  switch (session.status) {
    case 'starting':
      return { do: 'start' };
    case 'running':
      return watch;
    case 'ending':
      return { do: 'close' };
    default:
      return { do: 'save' };
  }
}

/** Its Chromium has ended: with its desktop or its computer, where that has ended too, else by itself. */
export async function noteDeath(
  database: Database,
  id: string,
  { hasDisplay }: { hasDisplay: boolean },
): Promise<void> {
  if ((await endedIfUnwanted(database, id)) !== undefined) {
    await failBrowser(database, id, hasDisplay ? 'BROWSER_ENDED' : 'DESKTOP_ENDED');
  }
}

async function endedIfUnwanted(database: Database, id: string): Promise<BrowserSession | undefined> {
  const session = await findBrowser(database, id);
  if (session === undefined || !['starting', 'running'].includes(session.status)) return session;
  const code = endCodeOf(session) ?? (await whyUnwanted(database, session));
  if (code === undefined) return session;
  await failBrowser(database, id, code);
  return findBrowser(database, id);
}

/** Why it is to end, though nobody has said so. */
async function whyUnwanted(
  database: Database,
  { createdBy, spaceId, desktopSessionId }: BrowserSession,
): Promise<string | undefined> {
  const sql = `SELECT u.disabled_at AS disabledAt, m.role IN ('owner', 'editor') AS mayUse FROM users u
    LEFT JOIN space_members m ON m.user_id = u.id AND m.space_id = ? WHERE u.id = ?`;
  const [[maker]] = await database.pool.query<RowDataPacket[]>(sql, [spaceId, createdBy]);
  if (maker?.disabledAt != null) return 'USER_DISABLED';
  if (maker?.mayUse !== 1) return 'MEMBER_REMOVED';
  if (desktopSessionId === null) return undefined;
  const desktop = await findDesktop(database, desktopSessionId);
  return desktop === undefined || desktopEndOf(desktop) !== undefined ? 'DESKTOP_ENDED' : undefined;
}

/**
 * Its Chromium takes orders; where what it was to open first has not come, the error says why. False where nobody wants
 * it any more.
 */
export async function noteStarted(
  { pool }: Pick<Database, 'pool'>,
  id: string,
  urlError?: { code: string; message: string },
): Promise<boolean> {
  await pool.query(
    `UPDATE browser_sessions SET status = 'running', status_at = ?, was_started = 1, url = NULL, url_code = ?,
      url_detail = ? WHERE id = ? AND status = 'starting'`,
    [new Date(), urlError?.code ?? null, urlError?.message.slice(0, 500) ?? null, id],
  );
  return (await findBrowser({ pool }, id))?.status === 'running';
}

/** It is over for this reason, where it was not already; what there is of it is ended next. */
export async function failBrowser(database: Database, id: string, code: string): Promise<void> {
  await transaction(database, (tx) => beginEnd(tx, id, knownEnd(code)));
}

/** Nothing of it runs any more. */
export async function noteClosed({ pool }: Pick<Database, 'pool'>, { id }: BrowserSession): Promise<void> {
  await pool.query("UPDATE browser_sessions SET status = 'saving', status_at = ? WHERE id = ? AND status = 'ending'", [
    new Date(),
    id,
  ]);
}
