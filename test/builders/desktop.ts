import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { insertRows } from './rows.ts';

/** The row of an ended session. */
export function desktopRow(of: { spaceId: string; computerId: string; createdBy: string }): Record<string, unknown> {
  return {
    id: newId('desktopSession'),
    space_id: of.spaceId,
    computer_id: of.computerId,
    generation: 1,
    display: 10,
    width: 800,
    height: 600,
    status: 'ended',
    status_at: new Date(),
    end_code: 'COMPUTER_STOPPED',
    created_by: of.createdBy,
    created_at: new Date(),
    ended_at: new Date(),
  };
}

export async function insertDesktop(database: Database, of: Parameters<typeof desktopRow>[0]): Promise<string> {
  const row = desktopRow(of);
  await insertRows(database, { desktop_sessions: row });
  return String(row.id);
}
