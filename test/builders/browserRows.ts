import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { insertRows } from './rows.ts';

interface Owner {
  spaceId: string;
  computerId: string;
  createdBy: string;
}

/** The row of an unused profile. */
export function profileRow({ spaceId, computerId, createdBy }: Owner): Record<string, unknown> {
  return {
    id: newId('browserProfile'),
    space_id: spaceId,
    name: 'Shopping',
    computer_id: computerId,
    opened: 1,
    saved: 0,
    created_by: createdBy,
    created_at: new Date(),
  };
}

/** The row of an ended session. */
export function browserRow({ spaceId, computerId, createdBy }: Owner): Record<string, unknown> {
  return {
    id: newId('browserSession'),
    space_id: spaceId,
    number: 0,
    computer_id: computerId,
    generation: 1,
    width: 1_280,
    height: 800,
    status: 'ended',
    status_at: new Date(),
    was_started: 1,
    end_code: 'COMPUTER_STOPPED',
    downloaded_files: 0,
    downloaded_bytes: 0,
    created_by: createdBy,
    created_at: new Date(),
    ended_at: new Date(),
  };
}

export async function insertProfile(database: Database, of: Owner): Promise<string> {
  const row = profileRow(of);
  await insertRows(database, { browser_profiles: row });
  return String(row.id);
}

export async function insertBrowser(database: Database, of: Owner): Promise<string> {
  const row = browserRow(of);
  await insertRows(database, { browser_sessions: row });
  return String(row.id);
}
