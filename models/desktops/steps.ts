import { isOffComputer } from '../computers/sessionOn.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { endCodeOf, findDesktop, knownEnd } from './session.ts';
import { beginEnd, endDesktop } from './sessions.ts';

/** The next step of a session’s workflow. */
export type DesktopStep =
  | { do: 'rest' }
  /** The session runs, or cannot be ended yet. The workflow waits for a signal. */
  | { do: 'watch'; waitMs: number }
  | { do: 'start' | 'stop' };

/** How often the workflow checks whether the X server is alive. */
const watchMs = 10_000;

/** Decides the next step, and records an end with the computer. A repeated call decides the same. */
export async function nextDesktopStep(database: Database, id: string): Promise<DesktopStep> {
  const session = await findDesktop(database, id);
  if (session === undefined || session.status === 'ended') return { do: 'rest' };
  if (isOffComputer(session)) {
    await endDesktop(database, id, endCodeOf(session) ?? 'COMPUTER_STOPPED');
    return { do: 'rest' };
  }
  // Nothing starts or ends on a paused computer.
  if (session.computerStatus === 'paused' || session.status === 'running') return { do: 'watch', waitMs: watchMs };
  return { do: session.status === 'starting' ? 'start' : 'stop' };
}

/** Records that the X server accepts viewers. False if the session was ended in the meantime. */
export async function noteStarted({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = "UPDATE desktop_sessions SET status = 'running', status_at = ? WHERE id = ? AND status = 'starting'";
  await execute(pool, sql, [new Date(), id]);
  return (await findDesktop({ pool }, id))?.status === 'running';
}

/** Begins the end of a session for this reason, unless it is ending already. */
export async function failDesktop(database: Database, id: string, code: string): Promise<void> {
  await transaction(database, (tx) => beginEnd(tx, id, knownEnd(code)));
}
