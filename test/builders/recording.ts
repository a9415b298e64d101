import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { waitFor } from '../support/waitFor.ts';
import type { TestComputer } from './computer.ts';
import { insertRows } from './rows.ts';

/** A recording as the API shows it. */
export interface Recording {
  id: string;
  status: 'starting' | 'recording' | 'saving' | 'saved' | 'failed' | 'discarded';
  name: string;
  resolution: string;
  end: { code: string; detail: string } | null;
  error: { code: string; detail: string } | null;
  itemId: string | null;
  size: number | null;
  durationSeconds: number | null;
  computerPath: string | null;
  endedAt: string | null;
}

/** The recordings of a desktop session, over the API. */
export function recordingsOf(computer: TestComputer, sessionId: string) {
  const path = `/desktop/sessions/${sessionId}/recordings`;
  const get = (id: string) => computer.expect<Recording>(200, 'GET', `${path}/${id}`);
  return {
    path,
    get,
    start: (body: object = {}) => computer.expect<Recording>(201, 'POST', path, body),
    stop: (id: string) => computer.expect<Recording>(200, 'POST', `${path}/${id}/stop`),
    list: async () => (await computer.expect<{ data: Recording[] }>(200, 'GET', path)).data,
    until: (id: string, status: Recording['status']) =>
      waitFor(`the recording to be ${status}`, async () => {
        const recording = await get(id);
        return recording.status === status ? recording : undefined;
      }),
  };
}

/** The bytes of a recording on the drive. */
export async function savedBytes({ user }: TestComputer, { itemId }: Pick<Recording, 'itemId'>): Promise<Buffer> {
  const response = await user.fetch(`/api/spaces/${user.spaceId}/drive/items/${itemId}/content`);
  if (response.status !== 200) throw new Error(`The item answered ${response.status}.`);
  return Buffer.from(await response.arrayBuffer());
}

/** The row of a discarded recording. */
export function recordingRow(of: {
  spaceId: string;
  computerId: string;
  sessionId: string;
  createdBy: string;
}): Record<string, unknown> {
  const now = new Date();
  return {
    id: newId('desktopRecording'),
    space_id: of.spaceId,
    computer_id: of.computerId,
    session_id: of.sessionId,
    status: 'discarded',
    status_at: now,
    name: 'Desktop.mp4',
    folder_path: '/Recordings',
    display: 10,
    width: 800,
    height: 600,
    frames_per_second: 10,
    max_seconds: 600,
    max_bytes: 1_048_576,
    has_file: 0,
    created_by: of.createdBy,
    asked_by: of.createdBy,
    created_at: now,
    ended_at: now,
    settled_at: now,
  };
}

export async function insertRecording(database: Database, of: Parameters<typeof recordingRow>[0]): Promise<string> {
  const row = recordingRow(of);
  await insertRows(database, { desktop_recordings: row });
  return String(row.id);
}
