import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type DesktopRecording, getRecording, type RecordingRef } from './recording.ts';
import type { DesktopSession } from './session.ts';

/** The folder of the drive for a recording. */
export type RecordingFolder = { id: string } | { path: string };

export interface NewRecording {
  name: string;
  folder: RecordingFolder;
  framesPerSecond: number;
  maxSeconds: number;
  maxBytes: number;
  apiKeyId: string | null;
}

/**
 * Orders a recording of a session. False when a recording with this id exists already. Throws 409 `RECORDING_RUNNING`,
 * 410 `DESKTOP_ENDED`.
 */
export async function createRecording(
  database: Database,
  { sessionId, recordingId, spaceId, computerId }: RecordingRef,
  fields: NewRecording,
  actor: Actor & { userId: string },
): Promise<boolean> {
  return transaction(database, async (tx) => {
    // The lock on the session’s row keeps out other requests, and the session’s end.
    const [session] = await select<Pick<DesktopSession, 'status' | 'display' | 'width' | 'height'>>(
      tx,
      'SELECT status, display, width, height FROM desktop_sessions WHERE id = ? FOR UPDATE',
      [sessionId],
    );
    const known = await select<{ id: string }>(
      tx,
      'SELECT id FROM desktop_recordings WHERE running_on = ? UNION SELECT id FROM desktop_recordings WHERE id = ?',
      [sessionId, recordingId],
    );
    if (known.some(({ id }) => id === recordingId)) return false;
    if (known.length > 0) {
      const detail = 'This desktop session is recorded already. Stop that recording first.';
      throw new DomainError('conflict', 'RECORDING_RUNNING', detail);
    }
    if (session?.status !== 'running') {
      throw new DomainError('gone', 'DESKTOP_ENDED', 'The desktop session has ended.');
    }
    const now = new Date();
    await insert(tx, 'desktop_recordings', {
      id: recordingId,
      spaceId,
      computerId,
      sessionId,
      runningOn: sessionId,
      status: 'starting',
      statusAt: now,
      name: fields.name,
      ...placed(fields.folder),
      display: session.display,
      // The encoder needs an even width and height.
      width: even(session.width),
      height: even(session.height),
      framesPerSecond: fields.framesPerSecond,
      maxSeconds: fields.maxSeconds,
      maxBytes: fields.maxBytes,
      hasFile: 0,
      createdBy: actor.userId,
      askedBy: actor.userId,
      apiKeyId: fields.apiKeyId,
      createdAt: now,
    });
    await appendAudit(tx, spaceId, actor, 'desktop-recording.started', recordingId);
    return true;
  });
}

function even(pixels: number): number {
  return pixels + (pixels % 2);
}

function placed(folder: RecordingFolder) {
  return 'id' in folder ? { folderId: folder.id, folderPath: null } : { folderId: null, folderPath: folder.path };
}

/** Orders the end of a recording, which is then saved. An ended one stays as it is. Throws 404. */
export async function stopRecording(database: Database, ref: RecordingRef, actor: Actor): Promise<DesktopRecording> {
  await getRecording(database, ref);
  await transaction(database, async (tx) => {
    if (!(await beginRecordingEnd(tx, ref.recordingId, 'RECORDING_STOPPED'))) return;
    await appendAudit(tx, ref.spaceId, actor, 'desktop-recording.stopped', ref.recordingId);
  });
  return getRecording(database, ref);
}

/** Begins the end of a recording for this reason. False if it was ending already. */
export async function beginRecordingEnd(tx: Transaction, id: string, code: string): Promise<boolean> {
  const now = new Date();
  const sql = `UPDATE desktop_recordings SET status = 'stopping', status_at = ?, end_code = ?, ended_at = ?
    WHERE id = ? AND status IN ('starting', 'recording')`;
  return (await execute(tx, sql, [now, code, now, id])).affectedRows > 0;
}

/**
 * Orders that a recording is thrown away, while it runs, is being saved, or after it failed. Throws 404, 409
 * `RECORDING_SAVED` when it is in the drive.
 */
export async function discardRecording(database: Database, ref: RecordingRef, actor: Actor): Promise<DesktopRecording> {
  await getRecording(database, ref);
  await transaction(database, async (tx) => {
    const now = new Date();
    const sql = `UPDATE desktop_recordings SET status = 'discarding', status_at = ?, settled_at = NULL, error_code = NULL,
        end_code = COALESCE(end_code, 'RECORDING_STOPPED'), ended_at = COALESCE(ended_at, ?)
      WHERE id = ? AND status IN ('starting', 'recording', 'stopping', 'saving', 'failed')`;
    const { affectedRows } = await execute(tx, sql, [now, now, ref.recordingId]);
    if (affectedRows > 0) await appendAudit(tx, ref.spaceId, actor, 'desktop-recording.discarded', ref.recordingId);
  });
  const recording = await getRecording(database, ref);
  if (recording.status !== 'saved') return recording;
  throw new DomainError(
    'conflict',
    'RECORDING_SAVED',
    'The recording is saved as a file in the drive. Delete that file instead.',
  );
}

/**
 * Saves a failed recording again, to another folder if one is named. A recording that is saved, or is being saved,
 * stays as it is. Throws 404, 409 `RECORDING_NOT_ENDED` or `RECORDING_DISCARDED`, 410 `RECORDING_GONE`.
 */
export async function saveAgain(
  database: Database,
  ref: RecordingRef,
  folder: RecordingFolder | undefined,
  actor: Actor & { userId: string; apiKeyId: string | null },
): Promise<DesktopRecording> {
  const recording = await getRecording(database, ref);
  const { status, hasFile } = recording;
  if (status === 'saving' || status === 'saved') return recording;
  if (status === 'discarding' || status === 'discarded') {
    throw new DomainError('conflict', 'RECORDING_DISCARDED', 'The recording was discarded.');
  }
  if (status !== 'failed') {
    throw new DomainError(
      'conflict',
      'RECORDING_NOT_ENDED',
      'The recording has not ended yet. Stop it before you save it.',
    );
  }
  if (!hasFile) throw new DomainError('gone', 'RECORDING_GONE', 'The file of this recording no longer exists.');
  await transaction(database, async (tx) => {
    const fields = {
      status: 'saving',
      statusAt: new Date(),
      settledAt: null,
      errorCode: null,
      // The recording now goes into the drive with the authority of this caller.
      askedBy: actor.userId,
      apiKeyId: actor.apiKeyId,
      ...(folder && placed(folder)),
    };
    const sql = "UPDATE desktop_recordings SET ? WHERE id = ? AND status = 'failed'";
    const { affectedRows } = await execute(tx, sql, [fields, ref.recordingId]);
    if (affectedRows > 0) await appendAudit(tx, ref.spaceId, actor, 'desktop-recording.save-retried', ref.recordingId);
  });
  return getRecording(database, ref);
}
