import type { RowDataPacket } from 'mysql2/promise';
import { notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
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

const columns = `id, space_id AS spaceId, computer_id AS computerId, session_id AS sessionId, status,
  status_at AS statusAt, name, folder_id AS folderId, folder_path AS folderPath, display, width, height,
  frames_per_second AS framesPerSecond, max_seconds AS maxSeconds, max_bytes AS maxBytes, has_file AS hasFile,
  end_code AS endCode, error_code AS errorCode, item_id AS itemId, size, duration_ms AS durationMs,
  created_by AS createdBy, asked_by AS askedBy, api_key_id AS apiKeyId, created_at AS createdAt, ended_at AS endedAt, settled_at AS settledAt`;

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
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM desktop_recordings WHERE id = ?`, [id]);
  return rows[0] && recordingOf(rows[0]);
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
  RECORDING_STOPPED: 'Somebody stopped it.',
  SECONDS_REACHED: 'It was as long as it could become.',
  BYTES_REACHED: 'Its file was as large as it could become.',
  RECORDER_ENDED: 'What recorded it has ended by itself, as where the disk or the memory of the computer is full.',
};

/** The text for a recording's own end. Other codes are ends of its session. */
export function recordingEndDetail(code: string): string | undefined {
  return ends[code];
}

const failures: Readonly<Record<string, string>> = {
  RECORDING_UNAVAILABLE: 'This computer has no ffmpeg: its operator installs what docs/desktops.md names.',
  RECORDING_NOT_STARTED: 'It could not be started.',
  RECORDING_LOST: 'What was recorded is no longer on the computer.',
  RECORDING_EMPTY: 'It has no picture.',
  RECORDING_DAMAGED: 'The file on the computer is not a video any more.',
  RECORDING_FORBIDDEN: 'Whoever has started it may not put files into the drive any more.',
  QUOTA_EXCEEDED: 'The drive is full. Make room, and save it again.',
  FILE_TOO_LARGE: 'It is larger than a file in the drive may be.',
  FOLDER_GONE: 'The folder in the drive is gone. Save it to another one.',
  FOLDER_UNFIT: 'It cannot be put there. Save it to another folder.',
  COMPUTER_SILENT: 'The computer could not be asked for the file for too long.',
  RECORDING_NOT_SAVED: 'It could not be put into the drive.',
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
