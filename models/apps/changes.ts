import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** The authority of a change to content that an app may run later. */
export interface Changer extends Authority {
  /** The turn of the agent that makes the change. Null for a person, or a program with a key. */
  turnId: string | null;
}

/** The author of a change that counts for the app's next version. */
export interface AppAuthor extends Changer {
  /** Null if the author is unknown. Then nothing is granted. */
  userId: string | null;
}

/** The changes of one author. */
export interface AppChange extends AppAuthor {
  id: string;
  number: number;
  changedAt: Date;
  unseen: 1 | null;
  /** 1 if the version in use has changes of this author, who may not do everything that a later version can need. */
  taken: 1 | null;
}

/**
 * Notes, in the transaction of the change, that the content of these items changed. Those that are apps are looked at
 * again. A change without a changer has no rights at all. Returns whether one of the items is an app.
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

/** Returns whether one of these items is an app. */
export async function isAnyApp(tx: Transaction, itemIds: readonly string[]): Promise<boolean> {
  const sql = 'SELECT 1 FROM apps WHERE item_id IN (?) AND live = 1 LIMIT 1';
  return itemIds.length > 0 && (await select(tx, sql, [itemIds])).length > 0;
}

const columns = 'id, user_id, api_key_id, scopes, turn_id, number, unseen, taken, changed_at';

function changeOf(row: object): AppChange {
  const { scopes, ...rest } = row as Omit<AppChange, 'scopes'> & { scopes: string | null };
  return { ...rest, scopes: scopes === null ? null : (JSON.parse(scopes) as string[]) };
}

/** The changes that count for the next version, ordered by the time of each author's last change. */
export async function changesOf({ pool }: Pick<Database, 'pool'>, appId: string): Promise<AppChange[]> {
  const sql = `SELECT ${columns} FROM app_changes WHERE app_id = ? ORDER BY changed_at, id`;
  const rows = await select(pool, sql, [appId]);
  return rows.map(changeOf);
}

/** Like `changesOf`, locked. A concurrent change is included, or waits. */
export async function lockChanges(tx: Transaction, appId: string): Promise<AppChange[]> {
  const sql = `SELECT ${columns} FROM app_changes WHERE app_id = ? ORDER BY changed_at, id FOR UPDATE`;
  return (await select<object>(tx, sql, [appId])).map(changeOf);
}

/**
 * Keeps the authors of locked changes that are now in the version in use. They count again if a later version needs
 * more than they may do.
 */
export async function keepTaken(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ id }) => id);
  await execute(tx, 'UPDATE app_changes SET taken = 1, unseen = NULL WHERE id IN (?)', [ids]);
}

/** Forgets locked changes that were approved by a user with the rights for them, or undone. */
export async function forgetChanges(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  await execute(tx, 'DELETE FROM app_changes WHERE id IN (?)', [changes.map(({ id }) => id)]);
}

/** Records that the app was looked at after these changes, which stay. */
export async function noteSeen(tx: Transaction, changes: readonly AppChange[]): Promise<void> {
  if (changes.length === 0) return;
  await execute(tx, 'UPDATE app_changes SET unseen = NULL WHERE id IN (?)', [changes.map(({ id }) => id)]);
}

/** Like `noteSeen`, for one change of a repository. Does nothing if the author has changed it again since. */
export async function noteRepositorySeen(
  { pool }: Pick<Database, 'pool'>,
  { id, number }: Pick<AppChange, 'id' | 'number'>,
): Promise<void> {
  const sql = `UPDATE app_changes c JOIN apps a ON a.id = c.app_id
       JOIN drive_items i ON i.id = a.item_id AND i.kind = 'repository'
        SET c.unseen = NULL WHERE c.id = ? AND c.number = ?`;
  await execute(pool, sql, [id, number]);
}

export type UnseenChange = Waiting & { appId: string; number: number };

/** Changes after which the app was not looked at. */
export const unseenChanges = waitingIn<UnseenChange>({
  table: 'app_changes',
  columns: ['app_id', 'number'],
  where: 'unseen = 1',
  time: 'changed_at',
});
