import type { RowDataPacket } from 'mysql2';
import { type Actor, appendAudit } from '../audit.ts';
import { type Database, transaction } from '../database.ts';
import { notFound } from '../errors.ts';
import { newId } from '../ids.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../pages.ts';
import { execute, insert, select } from '../sql.ts';
import type { AppManifest, ManifestProblem } from './manifest.ts';

/** A folder or a repository of the drive that is an app. */
export interface App {
  /** Its own; callers name it by its item. */
  id: string;
  itemId: string;
  spaceId: string;
  /** Where a folder's components run; null is the space's default computer. */
  computerId: string | null;
  /** As it was last when it was right. */
  manifest: AppManifest;
  manifestTag: string;
  /** Why the present manifest cannot be used. */
  problem: ManifestProblem | null;
  createdBy: string;
  createdAt: Date;
  removedAt: Date | null;
}

const columns = `id, item_id AS itemId, space_id AS spaceId, computer_id AS computerId, manifest,
  manifest_tag AS manifestTag, problem, created_by AS createdBy, created_at AS createdAt, removed_at AS removedAt`;

function appOf(row: object): App {
  const { manifest, problem, ...rest } = row as Omit<App, 'manifest' | 'problem'> & {
    manifest: string;
    problem: string | null;
  };
  return {
    ...rest,
    manifest: JSON.parse(manifest) as AppManifest,
    problem: problem === null ? null : (JSON.parse(problem) as ManifestProblem),
  };
}

/** The app that an item is. Throws 404. */
export async function getAppOf({ pool }: Pick<Database, 'pool'>, itemId: string): Promise<App> {
  const sql = `SELECT ${columns} FROM apps WHERE item_id = ? AND live = 1`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [itemId]);
  if (rows[0] === undefined) throw notFound('app');
  return appOf(rows[0]);
}

/** In the order in which they were made. */
export async function listApps(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
  page: PageRequest,
): Promise<Page<App>> {
  const after = decodeCursor(page.cursor) ?? '';
  const sql = `SELECT ${columns} FROM apps WHERE space_id = ? AND live = 1 AND id > ? ORDER BY id LIMIT ?`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [spaceId, after, page.limit + 1]);
  return toPage(rows.map(appOf), page.limit, ({ id }) => id);
}

/** Makes an item an app. One that is one stays as it is. */
export async function makeApp(
  database: Database,
  fields: Pick<App, 'itemId' | 'spaceId' | 'manifest' | 'manifestTag'> & { actor: Actor & { userId: string } },
): Promise<App> {
  const { itemId, spaceId, manifest, manifestTag, actor } = fields;
  return transaction(database, async (tx) => {
    await appendAudit(tx, spaceId, actor, 'app.made', itemId);
    const sql = `SELECT ${columns} FROM apps WHERE item_id = ? AND live = 1 FOR UPDATE`;
    const [known] = await select<object>(tx, sql, [itemId]);
    if (known !== undefined) return appOf(known);
    const id = newId('app');
    const app = { id, itemId, spaceId, computerId: null, manifest, manifestTag, problem: null };
    const createdAt = new Date();
    await insert(tx, 'apps', {
      id,
      item_id: itemId,
      live: 1,
      space_id: spaceId,
      manifest: JSON.stringify(manifest),
      manifest_tag: manifestTag,
      created_by: actor.userId,
      created_at: createdAt,
    });
    return { ...app, createdBy: actor.userId, createdAt, removedAt: null };
  });
}

/** Keeps what its manifest says now, or why it cannot be used. */
export async function noteManifest(
  { pool }: Pick<Database, 'pool'>,
  { id, manifest, manifestTag, problem }: Pick<App, 'id' | 'manifest' | 'manifestTag' | 'problem'>,
): Promise<void> {
  await pool.query('UPDATE apps SET manifest = ?, manifest_tag = ?, problem = ? WHERE id = ?', [
    JSON.stringify(manifest),
    manifestTag,
    problem && JSON.stringify(problem),
    id,
  ]);
}

/** What the app is, stays in the drive. Throws 404. */
export async function removeApp(database: Database, { id, spaceId, itemId }: App, actor: Actor): Promise<void> {
  await transaction(database, async (tx) => {
    await appendAudit(tx, spaceId, actor, 'app.removed', itemId);
    const sql = 'UPDATE apps SET live = NULL, removed_at = ? WHERE id = ? AND live = 1';
    if ((await execute(tx, sql, [new Date(), id])).affectedRows === 0) throw notFound('app');
  });
}
