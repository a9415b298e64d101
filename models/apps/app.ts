import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { revokeAccountsOf } from '../databases/connections.ts';
import { driveModels } from '../drive/models.ts';
import { noteOrderedChanges } from '../git/orders.ts';
import { lockRepository } from '../git/repository.ts';
import type { Authority } from '../identity/authority.ts';
import { noteAppChange } from './changes.ts';
import { type AppManifest, environmentOfAll, type ManifestProblem } from './manifest.ts';

/** A folder or a repository of the drive that was made an app. */
export interface App {
  /** The app's own id. Callers name the app by its item. */
  id: string;
  itemId: string;
  spaceId: string;
  /** The computer of a folder's components. Null means the space's default computer. */
  computerId: string | null;
  /** The manifest of the version in use. It has no components if there is no such version. */
  manifest: AppManifest;
  /** The tag of the manifest that was read last. */
  manifestTag: string;
  /** The version in use. Null if none was taken into use yet. */
  versionId: string | null;
  /** The version that waits for approval. */
  waitingId: string | null;
  /** The last version in use without a change by an author of limited rights. Reviewers compare with it. */
  baseId: string | null;
  /** The reason why the present manifest cannot be used. */
  problem: ManifestProblem | null;
  createdBy: string;
  /** True while the waiting version is in a working tree, where nothing else can run instead. */
  treeWaits: boolean;
  /** The user who took the version into use. Automatic runs act in this user's name. */
  runsAs: string;
  /** The authority of that user at that time. No run of the version can do more, whoever asks for it. */
  authority: Authority;
  createdAt: Date;
  removedAt: Date | null;
}

const columns = `id, item_id, space_id, computer_id, manifest, manifest_tag, problem, version_id, waiting_id, base_id,
  tree_waits, created_by, COALESCE(runs_as, created_by) AS runsAs, api_key_id, scopes, created_at, removed_at`;

function appOf(row: object): App {
  const { manifest, problem, apiKeyId, scopes, treeWaits, ...rest } = row as Omit<
    App,
    'manifest' | 'problem' | 'authority' | 'treeWaits'
  > & {
    treeWaits: number;
    manifest: string;
    problem: string | null;
    apiKeyId: string | null;
    scopes: string | null;
  };
  return {
    ...rest,
    authority: { apiKeyId, scopes: scopes === null ? null : (JSON.parse(scopes) as string[]) },
    treeWaits: treeWaits === 1,
    manifest: JSON.parse(manifest) as AppManifest,
    problem: problem === null ? null : (JSON.parse(problem) as ManifestProblem),
  };
}

/** The app of an item. Throws 404. */
export async function getAppOf({ pool }: Pick<Database, 'pool'>, itemId: string): Promise<App> {
  const sql = `SELECT ${columns} FROM apps WHERE item_id = ? AND live = 1`;
  const rows = await select(pool, sql, [itemId]);
  if (rows[0] === undefined) throw notFound('app');
  return appOf(rows[0]);
}

/** The environment of the app that an item is. Undefined if it is no app, or its components name several or none. */
export async function environmentOfApp({ pool }: Pick<Database, 'pool'>, itemId: string): Promise<string | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM apps WHERE item_id = ? AND live = 1`, [itemId]);
  return row && environmentOfAll(appOf(row).manifest);
}

/** Finds an app by its own id. Undefined if it was removed. */
export async function findApp({ pool }: Pick<Database, 'pool'>, id: string): Promise<App | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM apps WHERE id = ? AND live = 1`, [id]);
  return row && appOf(row);
}

/** Like `findApp`, locked. */
export async function lockedApp(tx: Transaction, id: string): Promise<App | undefined> {
  const [row] = await select<object>(tx, `SELECT ${columns} FROM apps WHERE id = ? AND live = 1 FOR UPDATE`, [id]);
  return row && appOf(row);
}

/** Lists apps, oldest first. */
export async function listApps(
  database: Pick<Database, 'pool'>,
  spaceId: string,
  page: PageRequest,
): Promise<Page<App>> {
  const sql = `SELECT ${columns} FROM apps WHERE space_id = ? AND live = 1`;
  return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc', read: appOf });
}

/**
 * Makes an item an app, unless it is one. Its content counts as a change by the maker, so the first look takes it into
 * use in the maker's name, if the maker may do what it needs.
 */
export async function makeApp(
  database: Database,
  fields: Pick<App, 'itemId' | 'spaceId' | 'authority'> & { name: string; actor: Actor & { userId: string } },
): Promise<{ app: App; isNew: boolean }> {
  const { itemId, spaceId, name, authority, actor } = fields;
  return transaction(database, async (tx) => {
    await requireLivingSpace(tx, spaceId);
    // Under this lock, a concurrent write is either there before the app exists, or noted as a change of the app.
    await driveModels(tx).Drive.lock(spaceId, tx);
    // Git orders begin under this lock. Each finds the app, or is noted below.
    await lockRepository(tx, itemId);
    const sql = `SELECT ${columns} FROM apps WHERE item_id = ? AND live = 1 FOR UPDATE`;
    const [known] = await select<object>(tx, sql, [itemId]);
    if (known !== undefined) return { app: appOf(known), isNew: false };
    await appendAudit(tx, spaceId, actor, 'app.made', itemId);
    const id = newId('app');
    const manifest: AppManifest = { name, components: [] };
    const app = { id, itemId, spaceId, computerId: null, manifest, manifestTag: '', problem: null };
    const createdAt = new Date();
    await insert(tx, 'apps', {
      id,
      itemId,
      live: 1,
      spaceId,
      manifest,
      manifestTag: '',
      createdBy: actor.userId,
      apiKeyId: authority.apiKeyId,
      scopes: authority.scopes,
      createdAt,
    });
    await noteAppChange(tx, [itemId], { userId: actor.userId, by: { ...authority, turnId: null } });
    await noteOrderedChanges(tx, itemId);
    const version = { versionId: null, waitingId: null, baseId: null, treeWaits: false, runsAs: actor.userId };
    const made = { ...app, ...version, createdBy: actor.userId, authority, createdAt, removedAt: null };
    return { app: made, isNew: true };
  });
}

/** Serializes requests to one app and changes of its queue. Throws 404 if the app was removed. */
export async function lockApp(tx: Transaction, { id }: Pick<App, 'id'>): Promise<App> {
  const app = await lockedApp(tx, id);
  if (app === undefined) throw notFound('app');
  return app;
}

/** Removes the app. Its item stays in the drive. Throws 404. */
export async function removeApp(database: Database, { id, spaceId, itemId }: App, actor: Actor): Promise<void> {
  await transaction(database, async (tx) => {
    await appendAudit(tx, spaceId, actor, 'app.removed', itemId);
    const sql = 'UPDATE apps SET live = NULL, removed_at = ? WHERE id = ? AND live = 1';
    if ((await execute(tx, sql, [new Date(), id])).affectedRows === 0) throw notFound('app');
    await revokeAccountsOf(tx, [id]);
  });
}
