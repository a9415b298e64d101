import type { Transaction } from 'sequelize';
import { isOffComputer } from '../computers/sessionOn.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type DesktopRecording, findRecording, knownFailure, withoutFile } from './recording.ts';
import { beginRecordingEnd } from './recordings.ts';
import { endCodeOf, findDesktop } from './session.ts';

/** The next step of a recording’s workflow. */
export type RecordingStep =
  | { do: 'rest' }
  /** It records, or cannot be ended yet. The workflow waits for a signal. */
  | { do: 'watch'; waitMs: number }
  | { do: 'start' | 'stop' | 'save' | 'clear' };

/** How often the workflow looks whether the recorder has ended by itself. */
const watchMs = 5_000;
/** How long we wait for a computer that does not answer: longer than a computer may be paused. */
const patienceMs = 7 * 86_400_000;

/** Decides the next step, and records changes. A repeated call decides the same. */
export async function nextRecordingStep(database: Database, id: string): Promise<RecordingStep> {
  const recording = await findRecording(database, id);
  if (recording === undefined || recording.settledAt !== null) return { do: 'rest' };
  if (isPastHope(recording)) return giveUp(database, recording);
  switch (recording.status) {
    case 'saving':
      return { do: 'save' };
    case 'saved':
    case 'discarded':
      return { do: 'clear' };
    default:
      return nextOfRunning(database, recording);
  }
}

async function nextOfRunning(database: Database, { id, sessionId, status }: DesktopRecording): Promise<RecordingStep> {
  const session = await findDesktop(database, sessionId);
  const isPaused = session?.computerStatus === 'paused';
  const code = session === undefined ? 'DESKTOP_DELETED' : endCodeOf(session);
  if (status === 'starting' || status === 'recording') {
    if (code === undefined) {
      return status === 'recording' || isPaused ? { do: 'watch', waitMs: watchMs } : { do: 'start' };
    }
    await transaction(database, (tx) => beginRecordingEnd(tx, id, code));
  }
  // The computer has stopped or restarted since, and the recorder ended with it.
  if (session === undefined || isOffComputer(session)) {
    await noteRecorderEnd(database, id, code ?? 'COMPUTER_STOPPED');
    return nextRecordingStep(database, id);
  }
  // A paused computer cannot end a recorder.
  return isPaused ? { do: 'watch', waitMs: watchMs } : { do: 'stop' };
}

function isPastHope({ statusAt, status }: DesktopRecording): boolean {
  return !['starting', 'recording', 'failed'].includes(status) && Date.now() - statusAt.getTime() > patienceMs;
}

async function giveUp(database: Database, { id, status }: DesktopRecording): Promise<RecordingStep> {
  if (status === 'stopping' || status === 'discarding') await noteRecorderEnd(database, id, 'COMPUTER_STOPPED');
  else if (status === 'saving') await failRecording(database, id, 'COMPUTER_SILENT');
  else await noteCleared(database, id);
  return nextRecordingStep(database, id);
}

/** Records that the recorder has begun to write its file. False if the recording was ended in the meantime. */
export async function noteRecording({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = "UPDATE desktop_recordings SET status = 'recording', status_at = ? WHERE id = ? AND status = 'starting'";
  await execute(pool, sql, [new Date(), id]);
  return (await findRecording({ pool }, id))?.status === 'recording';
}

/** Records that the computer is about to write a file. */
export async function noteFile({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(pool, 'UPDATE desktop_recordings SET has_file = 1 WHERE id = ?', [id]);
}

/** Records that the recorder has ended. The recording is saved next, or thrown away. */
export async function noteRecorderEnd({ pool }: Pick<Database, 'pool'>, id: string, code: string): Promise<void> {
  const now = new Date();
  await execute(
    pool,
    `UPDATE desktop_recordings SET running_on = NULL, status = IF(status = 'discarding', 'discarded', 'saving'),
        status_at = ?, end_code = COALESCE(end_code, ?), ended_at = COALESCE(ended_at, ?)
      WHERE id = ? AND status IN ('starting', 'recording', 'stopping', 'discarding')`,
    [now, code, now, id],
  );
}

/**
 * For the transaction that puts the file into the drive: only one attempt succeeds. False when the recording was saved
 * or thrown away in the meantime.
 */
export async function keepRecording(
  tx: Transaction,
  id: string,
  file: { itemId: string; size: number; durationMs: number },
): Promise<boolean> {
  const sql = `UPDATE desktop_recordings SET status = 'saved', status_at = ?, item_id = ?, size = ?, duration_ms = ?
    WHERE id = ? AND status = 'saving'`;
  return (await execute(tx, sql, [new Date(), file.itemId, file.size, file.durationMs, id])).affectedRows > 0;
}

/** Records why a recording is not in the drive. A file on the computer stays there. */
export async function failRecording({ pool }: Pick<Database, 'pool'>, id: string, code: string): Promise<void> {
  const now = new Date();
  const known = knownFailure(code);
  await execute(
    pool,
    `UPDATE desktop_recordings SET running_on = NULL, status = 'failed', status_at = ?, settled_at = ?, error_code = ?,
        has_file = IF(?, 0, has_file), ended_at = COALESCE(ended_at, ?)
      WHERE id = ? AND status IN ('starting', 'saving')`,
    [now, now, known, withoutFile.includes(known), now, id],
  );
}

/** Records that the computer has no file of the recording any more. */
export async function noteCleared({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(
    pool,
    `UPDATE desktop_recordings SET settled_at = ?, has_file = 0 WHERE id = ? AND status IN ('saved', 'discarded')
      AND settled_at IS NULL`,
    [new Date(), id],
  );
}
