import type { RowDataPacket } from 'mysql2/promise';
import { notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import type { DesktopRef } from './session.ts';

/**
 * `stopping` and `discarding` last until the recorder has ended, `saving` until the file is in the drive. After `saved`
 * and `discarded`, the files are removed from the computer.
 */
export type RecordingStatus =
  | 'starting'
  | 'recording'
  | 'stopping'
  | 'saving'
  | 'saved'
  | 'failed'
  | 'discarding'
  | 'discarded';

/** A recording of a desktop. It becomes a file of the drive. */
export interface DesktopRecording {
  id: string;
  spaceId: string;
  computerId: string;
  sessionId: string;
  status: RecordingStatus;
  statusAt: Date;
  /** The name of the file. */
  name: string;
  /** The folder of the drive: by its id, or by its path. A path is made if it is missing. */
  folderId: string | null;
  folderPath: string | null;
  /** The number in `DISPLAY`. */
  display: number;
  /** The size of its pictures. It stays the same when the display changes its size. */
  width: number;
  height: number;
  framesPerSecond: number;
  maxSeconds: number;
  maxBytes: number;
  /** Whether its computer may have a file of it. */
  hasFile: boolean;
  /** Why it has ended; null while it has not. */
  endCode: string | null;
  /** Why it is not in the drive. */
  errorCode: string | null;
  itemId: string | null;
  size: number | null;
  durationMs: number | null;
  createdBy: string;
  /** The user with whose authority it goes into the drive, and the API key of their request. */
  askedBy: string;
  apiKeyId: string | null;
  createdAt: Date;
  endedAt: Date | null;
  /** Since when its workflow has nothing left to do. */
  settledAt: Date | null;
}

const columns = `id, space_id, computer_id, session_id, status, status_at, name, folder_id, folder_path, display,
  width, height, frames_per_second, max_seconds, max_bytes, has_file, end_code, error_code, item_id, size,
  duration_ms, created_by, asked_by, api_key_id, created_at, ended_at, settled_at`;

export interface RecordingRef extends DesktopRef {
  recordingId: string;
}

/** Throws 404. */
export async function getRecording(
  database: Pick<Database, 'pool'>,
  { spaceId, computerId, sessionId, recordingId }: RecordingRef,
): Promise<DesktopRecording> {
  const found = await findRecording(database, recordingId);
  if (found?.spaceId !== spaceId || found.computerId !== computerId || found.sessionId !== sessionId) {
    throw notFound('recording');
  }
  return found;
}

export async function findRecording(
  { pool }: Pick<Database, 'pool'>,
  id: string,
): Promise<DesktopRecording | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM desktop_recordings WHERE id = ?`, [id]);
  return row && recordingOf(row);
}

/** A session’s recordings, newest first. */
export async function listRecordings(
  database: Pick<Database, 'pool'>,
  sessionId: string,
  page: PageRequest,
): Promise<Page<DesktopRecording>> {
  const sql = `SELECT ${columns} FROM desktop_recordings WHERE session_id = ?`;
  return readPage(database, page, { sql, values: [sessionId], by: 'id', order: 'desc', read: recordingOf });
}

function recordingOf(row: RowDataPacket): DesktopRecording {
  return { ...(row as DesktopRecording), hasFile: (row as { hasFile: unknown }).hasFile === 1 };
}

const ends: Readonly<Record<string, string>> = {
  RECORDING_STOPPED: 'A user stopped the recording.',
  SECONDS_REACHED: 'The recording reached its maximum length.',
  BYTES_REACHED: 'The recording reached its maximum file size.',
  RECORDER_ENDED:
    'The recorder has exited by itself, for example because the disk or the memory of the computer is full.',
};

/** The text for a recording's own end. Other codes are ends of its session. */
export function recordingEndDetail(code: string): string | undefined {
  return ends[code];
}

const failures: Readonly<Record<string, string>> = {
  RECORDING_UNAVAILABLE: 'This computer has no ffmpeg. The operator must install it; see docs/desktops.md.',
  RECORDING_NOT_STARTED: 'The recording could not be started.',
  RECORDING_LOST: 'The recorded file is no longer on the computer.',
  RECORDING_EMPTY: 'The recording contains no picture.',
  RECORDING_DAMAGED: 'The recorded file on the computer is no longer a video.',
  RECORDING_FORBIDDEN: 'The user who started the recording may no longer write to the drive.',
  QUOTA_EXCEEDED: 'The drive is full. Free some space, and save the recording again.',
  FILE_TOO_LARGE: 'The recording is larger than the maximum size of a file in the drive.',
  FOLDER_GONE: 'The folder in the drive no longer exists. Save the recording to another folder.',
  FOLDER_UNFIT: 'The recording cannot be saved there. Save it to another folder.',
  COMPUTER_SILENT: 'The computer did not answer for too long, so the file could not be fetched.',
  RECORDING_NOT_SAVED: 'The recording could not be saved to the drive.',
};

/** The code to store for a recording that is not in the drive: always one that has a text here. */
export function knownFailure(code: string): string {
  return Object.hasOwn(failures, code) ? code : 'RECORDING_NOT_SAVED';
}

export function failureDetailOf(code: string): string {
  return failures[code] ?? '';
}

/** After these failures the computer has no file of the recording. */
export const withoutFile = ['RECORDING_UNAVAILABLE', 'RECORDING_NOT_STARTED', 'RECORDING_LOST', 'RECORDING_EMPTY'];
