import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { insertRows } from './rows.ts';

interface DraftOf {
  itemId: string;
  spaceId: string;
  computerId: string;
  createdBy: string;
}

/** The row of a ready draft without files. */
export function draftRow({ itemId, spaceId, computerId, createdBy }: DraftOf) {
  const id = newId('gitDraft');
  const now = new Date();
  return {
    id,
    item_id: itemId,
    space_id: spaceId,
    computer_id: computerId,
    tree_path: `drafts/${id}`,
    branch: 'try',
    base_branch: 'main',
    is_filled: 0,
    status: 'ready',
    status_at: now,
    looked_at: now,
    created_by: createdBy,
    created_at: now,
  };
}

/** Returns the draft's id. */
export async function insertDraft(
  database: Database,
  of: DraftOf,
  more: Record<string, unknown> = {},
): Promise<string> {
  const row = { ...draftRow(of), ...more };
  await insertRows(database, { git_drafts: row });
  return row.id;
}
