import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** With what authority content is changed that an app may run later. */
export interface Changer extends Authority {
  /** The turn whose agent does it; null is a person, or a program with a key. */
  turnId: string | null;
}

/** The author of a change to an app that counts for its next version. */
export interface AppAuthor extends Changer {
  /** Null where nobody knows: then nothing is granted. */
  userId: string | null;
}

/** The changes of one author. */
export interface AppChange extends AppAuthor {
  id: string;
  number: number;
  changedAt: Date;
  unseen: 1 | null;
  /** 1 where the version in use has changes of this author too, who may not do all that the app may need later. */
  taken: 1 | null;
}

/**
 * Notes, in the transaction of the change, that what is in these items was changed; those of them that are apps are
 * looked at again. Without a changer it was nobody who may do anything. Returns whether one of them is an app.
 */
export async function noteAppChange(
  tx: Transaction,
  itemIds: readonly string[],
  { userId, by }: { userId: string | null; by?: Changer | undefined },
): Promise<boolean> {
  if (itemIds.length === 0) return false;
  const { apiKeyId = null, scopes = [], turnId = null } = by ?? {};
  const name = by === undefined ? 'nobody' : `${turnId === null ? '' : 'agent-'}${apiKeyId ?? userId}`;
  const row = [userId, apiKeyId, scopes && JSON.stringify(scopes), turnId];
  const { affectedRows } = await execute(
    tx,
    `INSERT INTO app_changes (id, app_id, space_id, user_id, api_key_id, scopes, turn_id, number, unseen, changed_at)
      SELECT CONCAT(a.id, ':', ?), a.id, a.space_id, ?, ?, ?, ?, 1, 1, ? FROM apps a WHERE a.item_id IN (?) AND a.live = 1
      ON DUPLICATE KEY UPDATE number = app_changes.number + 1, unseen = 1, turn_id = VALUES(turn_id),
        changed_at = VALUES(changed_at)`,
    [name, ...row, new Date(), itemIds],
  );
  return affectedRows > 0;
}

/** Whether one of these items is an app. */
export async function isAnyApp(tx: Transaction, itemIds: readonly string[]): Promise<boolean> {
  const sql = 'SELECT 1 FROM apps WHERE item_id IN (?) AND live = 1 LIMIT 1';
  return itemIds.length > 0 && (await select(tx, sql, [itemIds])).length > 0;
}

const columns = `id, user_id AS userId, api_key_id AS apiKeyId, scopes, turn_id AS turnId, number, unseen, taken,
  changed_at AS changedAt`;

function changeOf(row: object): AppChange {
  const { scopes, ...rest } = row as Omit<AppChange, 'scopes'> & { scopes: string | null };
  return { ...rest, scopes: scopes === null ? null : (JSON.parse(scopes) as string[]) };
}

/** The changes that count for the next version, in the order of the authors' last changes. */
export async function changesOf({ pool }: Pick<Database, 'pool'>, appId: string): Promise<AppChange[]> {
  const sql = `SELECT ${columns} FROM app_changes WHERE app_id = ? ORDER BY changed_at, id`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [appId]);
  return rows.map(changeOf);
}

/** The same, locked: whoever is about to add to them has done so, or waits. */
export async function lockChanges(tx: Transaction, appId: string): Promise<AppChange[]> {
  const sql = `SELECT ${columns} FROM app_changes WHERE app_id = ? ORDER BY changed_at, id FOR UPDATE`;
  return (await select<object>(tx, sql, [appId])).map(changeOf);
}

/**
 * Keeps the authors of locked changes that the version in use has, so that they count again when a later version needs
 * more than they may do.
 */
export async function keepTaken(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ id }) => id);
  await execute(tx, 'UPDATE app_changes SET taken = 1, unseen = NULL WHERE id IN (?)', [ids]);
}

/** Forgets locked changes: somebody with the rights for them has approved them, or the app is as it was before them. */
export async function forgetChanges(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  await execute(tx, 'DELETE FROM app_changes WHERE id IN (?)', [changes.map(({ id }) => id)]);
}

/** The app was looked at since: these changes wait, or say nothing that could be used. */
export async function noteSeen(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  await execute(tx, 'UPDATE app_changes SET unseen = NULL WHERE id IN (?)', [changes.map(({ id }) => id)]);
}

/** The same of one change, where the app is a repository. */
export async function noteRepositorySeen(
  { pool }: Pick<Database, 'pool'>,
  { id, number }: Pick<AppChange, 'id' | 'number'>,
): Promise<void> {
  await pool.query(
    `UPDATE app_changes c JOIN apps a ON a.id = c.app_id
       JOIN drive_items i ON i.id = a.item_id AND i.kind = 'repository'
        SET c.unseen = NULL WHERE c.id = ? AND c.number = ?`,
    [id, number],
  );
}

export type UnseenChange = Waiting & { appId: string; number: number };

/** Changes since which nobody has looked at their apps. */
export const unseenChanges = waitingIn<UnseenChange>({
  table: 'app_changes',
  columns: ['app_id AS appId', 'number'],
  where: 'unseen = 1',
  time: 'changed_at',
});
