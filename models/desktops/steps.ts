import { isOffComputer } from '../computers/sessionOn.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/database.ts';
import { endCodeOf, findDesktop, knownEnd } from './session.ts';
import { beginEnd, endDesktop } from './sessions.ts';

/** What a session’s workflow does next. */
export type DesktopStep =
  | { do: 'rest' }
  /** It runs, or cannot be ended yet; the workflow is told when something is to be done. */
  | { do: 'watch'; waitMs: number }
  | { do: 'start' | 'stop' };

/** How often somebody looks whether its X server lives, where nobody watches it. */
const watchMs = 10_000;

/** Says what is to be done next, and notes what has become of it. Asked again, it says the same. */
export async function nextDesktopStep(database: Database, id: string): Promise<DesktopStep> {
  const session = await findDesktop(database, id);
  if (session === undefined || session.status === 'ended') return { do: 'rest' };
  if (isOffComputer(session)) {
    await endDesktop(database, id, endCodeOf(session) ?? 'COMPUTER_STOPPED');
    return { do: 'rest' };
  }
  // A computer that stands still starts and ends nothing.
  if (session.computerStatus === 'paused' || session.status === 'running') return { do: 'watch', waitMs: watchMs };
  return { do: session.status === 'starting' ? 'start' : 'stop' };
}

/** Its X server takes viewers. False where nobody wants it any more. */
export async function noteStarted({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  await pool.query(
    "UPDATE desktop_sessions SET status = 'running', status_at = ? WHERE id = ? AND status = 'starting'",
    [new Date(), id],
  );
  return (await findDesktop({ pool }, id))?.status === 'running';
}

/** It is over for this reason, where it was not already; what there is of it is ended next. */
export async function failDesktop(database: Database, id: string, code: string): Promise<void> {
  await transaction(database, (tx) => beginEnd(tx, id, knownEnd(code)));
}
