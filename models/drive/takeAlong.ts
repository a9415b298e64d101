import type { Transaction } from 'sequelize';
import { execute, select } from '../database/sql.ts';
import type { Placed } from './changes.ts';

const rowsPerStatement = 1_000;

/**
 * Programs remove a folder by removing what is in it, one by one, and then the empty folder. So what the user has
 * removed from this folder since then leaves the trash, and is below the folder again, which goes there now: the trash
 * has one item, and who restores it gets all. Of several with one name, the last to be removed is in the folder. The
 * others stay in the trash by themselves.
 */
export async function takeAlong(
  { item: folder, place }: Placed,
  { userId, since }: { userId: string; since: Date },
  tx: Transaction,
): Promise<void> {
  const rows = await select<{ number: number; nameKey: Buffer }>(
    tx,
    `SELECT number, name_key FROM drive_items
      WHERE parent_id = ? AND live IS NULL AND trashed_from = ? AND trashed_by = ? AND trashed_at >= ?
        AND purging_at IS NULL
      ORDER BY trashed_at, number`,
    [folder.id, place.containerId, userId, since],
  );
  const last = new Map(rows.map(({ number, nameKey }) => [nameKey.toString('hex'), number]));
  const numbers = [...last.values()];
  for (let at = 0; at < numbers.length; at += rowsPerStatement) {
    await execute(
      tx,
      'UPDATE drive_items SET live = 1, trashed_at = NULL, trashed_by = NULL, trashed_from = NULL WHERE number IN (?)',
      [numbers.slice(at, at + rowsPerStatement)],
    );
  }
  if (numbers.length > 0) await folder.increment('childCount', { by: numbers.length, transaction: tx });
}
