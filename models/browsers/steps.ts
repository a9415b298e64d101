import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { endCodeOf as desktopEndOf, findDesktop } from '../desktops/session.ts';
import { type BrowserSession, endCodeOf, findBrowser, knownEnd } from './session.ts';
import { beginEnd } from './sessions.ts';

/** The next step of a session’s workflow. */
export type BrowserStep =
  | { do: 'rest' }
  /** The session runs, or cannot be ended yet. The workflow waits for a signal. */
  | { do: 'watch'; waitMs: number }
  /**
   * `collect` moves downloads into the drive, `close` ends Chromium, and `save` moves the last downloads and saves the
   * profile.
   */
  | { do: 'start' | 'collect' | 'close' | 'save' };

/** How often the workflow checks whether Chromium is alive. */
const watchMs = 10_000;
/** How often it checks whether a stopping computer has stopped. */
const stoppingMs = 500;
const watch: BrowserStep = { do: 'watch', waitMs: watchMs };

/** Decides the next step, and records an end that no caller ordered. A repeated call decides the same. */
export async function nextBrowserStep(database: Database, id: string): Promise<BrowserStep> {
  const session = await endedIfUnwanted(database, id);
  if (session === undefined || session.status === 'ended') return { do: 'rest' };
  // Nothing starts, ends or is saved on a paused computer.
  if (session.computerStatus === 'paused') return watch;
  // A stopping computer closes its browsers first, so their files are complete once it has stopped.
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

/** Records that Chromium has ended: with its desktop or computer if that has ended too, otherwise by itself. */
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

/** Why a session must end although no caller has ended it. */
async function whyUnwanted(
  database: Database,
  { createdBy, spaceId, desktopSessionId }: BrowserSession,
): Promise<string | undefined> {
  const sql = `SELECT u.disabled_at, m.role IN ('owner', 'editor') AS mayUse FROM users u
    LEFT JOIN space_members m ON m.user_id = u.id AND m.space_id = ? WHERE u.id = ?`;
  const [maker] = await select(database.pool, sql, [spaceId, createdBy]);
  if (maker?.disabledAt != null) return 'USER_DISABLED';
  if (maker?.mayUse !== 1) return 'MEMBER_REMOVED';
  if (desktopSessionId === null) return undefined;
  const desktop = await findDesktop(database, desktopSessionId);
  return desktop === undefined || desktopEndOf(desktop) !== undefined ? 'DESKTOP_ENDED' : undefined;
}

/**
 * Records that Chromium has started. `urlError` says why the first page did not open. False if the session was ended in
 * the meantime.
 */
export async function noteStarted(
  { pool }: Pick<Database, 'pool'>,
  id: string,
  urlError?: { code: string; message: string },
): Promise<boolean> {
  const sql = `UPDATE browser_sessions SET status = 'running', status_at = ?, was_started = 1, url = NULL, url_code = ?,
      url_detail = ? WHERE id = ? AND status = 'starting'`;
  await execute(pool, sql, [new Date(), urlError?.code ?? null, urlError?.message.slice(0, 500) ?? null, id]);
  return (await findBrowser({ pool }, id))?.status === 'running';
}

/** Begins the end of a session for this reason, unless it is ending already. */
export async function failBrowser(database: Database, id: string, code: string): Promise<void> {
  await transaction(database, (tx) => beginEnd(tx, id, knownEnd(code)));
}

/** Records that no process of the session runs any more. */
export async function noteClosed({ pool }: Pick<Database, 'pool'>, { id }: BrowserSession): Promise<void> {
  const sql = "UPDATE browser_sessions SET status = 'saving', status_at = ? WHERE id = ? AND status = 'ending'";
  await execute(pool, sql, [new Date(), id]);
}
