import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { hasDatabase } from '../databases/connections.ts';
import { isTreeToChange } from '../git/orders.ts';
import { type Authority, insufficientScope, may } from '../identity/authority.ts';
import { type App, lockApp } from './app.ts';
import { type AppChange, forgetChanges, keepTaken, lockChanges, noteAppChange, noteSeen } from './changes.ts';
import type { AppManifest, ManifestProblem } from './manifest.ts';
import { takeSchedules } from './takeSchedules.ts';
import {
  type AppContent,
  type AppVersion,
  addVersion,
  contentHashOf,
  findVersion,
  lockVersion,
  setVersionState,
} from './version.ts';
import { mayDoAll, scopesNeeded, sharedScopes, whyItWaits, whyMoreWaits } from './versionRules.ts';

/** The content that was found in an app, and the changes that were known before it was read. */
export interface Found {
  content: AppContent;
  changes: readonly AppChange[];
}

/** The user in whose name, and the rights with which, a version is taken into use. */
interface Taker extends Authority {
  userId: string;
}

/**
 * Takes found content into use, in the name of its last author, if all its authors may do what the content and the
 * version in use need. Authors are all who changed the app since the version in use, and authors of that version who
 * have limited rights and whose changes are not approved. Otherwise the content waits, and the version in use stays. If
 * the app was changed meanwhile, nothing is done, and the next look decides. Returns the app in its new state.
 */
export async function considerContent(database: Database, known: App, { content, changes }: Found): Promise<App> {
  const isConnected = await hasDatabase(database, known.id);
  return transaction(database, async (tx) => {
    const app = await lockApp(tx, known);
    const now = await lockChanges(tx, app.id);
    if (app.versionId !== known.versionId || !isSame(now, changes)) return app;
    const inUse = app.versionId === null ? undefined : await lockVersion(tx, app.id, app.versionId);
    const isRepository = content.files === null;
    const byThem = whyItWaits(now, { manifest: withAllOf(content, inUse), hasDatabase: isConnected });
    const treeWaits = isRepository && byThem.length > 0;
    // The files of a working tree are not hashed, so its changes stand for them.
    const contentHash = contentHashOf(content, treeWaits ? now : []);
    if (inUse?.contentHash === contentHash) return dropWaiting(tx, app, content, now);
    const asksForMore = isRepository && inUse !== undefined ? whyMoreWaits(inUse.manifest, content.manifest) : [];
    const reasons = [...byThem, ...asksForMore];
    const waiting = app.waitingId === null ? undefined : await lockVersion(tx, app.id, app.waitingId);
    if (reasons.length > 0 && waiting?.contentHash === contentHash && waiting.state === 'waiting') {
      return keepSeen(tx, app, content, now);
    }
    const authors = now.map(({ userId, apiKeyId, scopes, turnId }) => ({ userId, apiKeyId, scopes, turnId }));
    await setVersionState(tx, app.waitingId, 'replaced');
    const id = await addVersion(tx, app, { ...content, contentHash, authors, reasons });
    if (reasons.length > 0) {
      const row = { waitingId: id, treeWaits: treeWaits ? 1 : 0 };
      await execute(tx, 'UPDATE apps SET ? WHERE id = ?', [row, app.id]);
      return keepSeen(tx, { ...app, waitingId: id, treeWaits }, content, now);
    }
    const last = now.at(-1);
    // A repository that asks for no more than before keeps the user and the rights of its version in use.
    const taker: Taker =
      last?.userId == null || (isRepository && inUse !== undefined)
        ? { userId: app.runsAs, ...app.authority }
        : { userId: last.userId, apiKeyId: last.apiKeyId, scopes: sharedScopes(now) };
    const actor = { userId: taker.userId, credentialId: taker.apiKeyId, address: null };
    const taken = await take(tx, app, { id, content, taker, actor, isCleared: isRepository || now.every(mayDoAll) });
    await forgetChanges(tx, isRepository ? now : now.filter(mayDoAll));
    await keepTaken(tx, isRepository ? [] : now.filter((change) => !mayDoAll(change)));
    return taken;
  });
}

/**
 * Authors need the rights for both manifests. An author who may not change the version in use may not remove a part of
 * it either, and could put the part back into a working tree a moment later.
 */
function withAllOf({ manifest }: AppContent, inUse: AppContent | undefined): AppManifest {
  if (inUse === undefined) return manifest;
  return { ...manifest, components: [...manifest.components, ...inUse.manifest.components] };
}

function isSame(now: readonly AppChange[], before: readonly AppChange[]): boolean {
  // With the time, because an author who was forgotten in between counts from 1 again.
  const nameOf = ({ id, number, changedAt }: AppChange) => `${id} ${number} ${changedAt.getTime()}`;
  const known = new Set(before.map(nameOf));
  return now.length === before.length && now.every((change) => known.has(nameOf(change)));
}

/** The content equals the version in use again. */
async function dropWaiting(
  tx: Transaction,
  app: App,
  { manifestTag }: AppContent,
  changes: readonly AppChange[],
): Promise<App> {
  await setVersionState(tx, app.waitingId, 'replaced');
  const sql = 'UPDATE apps SET waiting_id = NULL, tree_waits = 0, manifest_tag = ?, problem = NULL WHERE id = ?';
  await execute(tx, sql, [manifestTag, app.id]);
  await forgetChanges(
    tx,
    changes.filter(({ taken }) => taken === null),
  );
  await noteSeen(
    tx,
    changes.filter(({ taken }) => taken !== null),
  );
  return { ...app, waitingId: null, treeWaits: false, manifestTag, problem: null };
}

async function keepSeen(
  tx: Transaction,
  app: App,
  { manifestTag }: AppContent,
  changes: readonly AppChange[],
): Promise<App> {
  await execute(tx, 'UPDATE apps SET manifest_tag = ?, problem = NULL WHERE id = ?', [manifestTag, app.id]);
  await noteSeen(tx, changes);
  return { ...app, manifestTag, problem: null };
}

async function take(
  tx: Transaction,
  app: App,
  {
    id,
    content,
    taker,
    actor,
    isCleared,
  }: Pick<Found, 'content'> & { id: string; taker: Taker; actor: Actor; isCleared: boolean },
): Promise<App> {
  const { manifest, manifestTag } = content;
  const { userId, apiKeyId } = taker;
  const baseId = isCleared ? id : app.baseId;
  const scopes = taker.scopes && JSON.stringify(taker.scopes);
  await setVersionState(tx, app.versionId, 'replaced');
  await execute(
    tx,
    `UPDATE app_versions SET state = 'in_use', content_hash = ?, user_id = ?, api_key_id = ?, scopes = ?,
        decided_by = ?, decided_at = ? WHERE id = ?`,
    [contentHashOf(content), userId, apiKeyId, scopes, actor.userId, new Date(), id],
  );
  await execute(
    tx,
    `UPDATE apps SET manifest = ?, manifest_tag = ?, problem = NULL, version_id = ?, base_id = ?, waiting_id = NULL,
        tree_waits = 0, runs_as = ?, api_key_id = ?, scopes = ? WHERE id = ?`,
    [JSON.stringify(manifest), manifestTag, id, baseId, userId, apiKeyId, scopes, app.id],
  );
  await takeSchedules(tx, { ...app, manifest });
  await appendAudit(tx, app.spaceId, actor, 'app.version-taken', id);
  const authority = { apiKeyId, scopes: taker.scopes };
  const taken = { versionId: id, waitingId: null, baseId, treeWaits: false, runsAs: userId, authority };
  return { ...app, manifest, manifestTag, problem: null, ...taken };
}

/** Records why an app's present content cannot be used. The version in use stays. */
export async function noteProblem(
  database: Database,
  known: App,
  { problem, manifestTag, changes }: { problem: ManifestProblem; manifestTag: string; changes: readonly AppChange[] },
): Promise<App> {
  return transaction(database, async (tx) => {
    const app = await lockApp(tx, known);
    const now = await lockChanges(tx, app.id);
    if (app.versionId !== known.versionId || !isSame(now, changes)) return app;
    const sql = 'UPDATE apps SET manifest_tag = ?, problem = ? WHERE id = ?';
    await execute(tx, sql, [manifestTag, JSON.stringify(problem), app.id]);
    await noteSeen(tx, now);
    return { ...app, manifestTag, problem };
  });
}

interface Decision {
  versionId: string;
  actor: Actor & { userId: string };
  authority: Authority;
}

/**
 * Takes a waiting version into use, in the name of the approver. Idempotent. Throws 404, 403 `INSUFFICIENT_SCOPE`, and
 * 409 `APP_VERSION_REPLACED` if the version is not the present content.
 */
export async function approveVersion(
  database: Database,
  known: App,
  { versionId, actor, authority }: Decision,
): Promise<AppVersion> {
  const isConnected = await hasDatabase(database, known.id);
  await transaction(database, async (tx) => {
    const app = await lockApp(tx, known);
    const changes = await lockChanges(tx, app.id);
    const version = await lockVersion(tx, app.id, versionId);
    if (version.state === 'in_use') return;
    const missing = scopesNeeded({ ...version, hasDatabase: isConnected }).find((scope) => !may(authority, scope));
    if (missing !== undefined) throw insufficientScope(missing, ', which this version of the app needs');
    // The approver has not seen changes that were not looked at.
    if (version.state !== 'waiting' || changes.some(({ unseen }) => unseen !== null)) throw replaced();
    if (version.files === null) await requireSettledTree(tx, app, { version, changes, hasDatabase: isConnected });
    const taker = { userId: actor.userId, ...authority };
    const isCleared = version.files === null || mayDoAll({ ...taker, turnId: null });
    await take(tx, app, { id: version.id, content: version, taker, actor, isCleared });
    await forgetChanges(tx, changes);
    if (isCleared) return;
    // The approver answers for the whole content, within the limits of the approver's key.
    await noteAppChange(tx, [app.itemId], { userId: actor.userId, by: { ...authority, turnId: null } });
    await keepTaken(tx, await lockChanges(tx, app.id));
  });
  return requireVersion(database, known, versionId);
}

/**
 * A version does not contain a repository's working tree. The approver has seen the tree after the changes that were
 * known at the last look. Throws 409 `APP_VERSION_REPLACED` if there are others, and `GIT_REPOSITORY_BUSY` while git is
 * about to change the tree.
 */
async function requireSettledTree(
  tx: Transaction,
  { itemId, treeWaits }: App,
  { version, changes, hasDatabase: isConnected }: { version: AppVersion; changes: AppChange[]; hasDatabase: boolean },
): Promise<void> {
  const isStale = treeWaits
    ? version.contentHash !== contentHashOf(version, changes)
    : whyItWaits(changes, { ...version, hasDatabase: isConnected }).length > 0;
  if (isStale) throw replaced();
  if (!(await isTreeToChange(tx, itemId))) return;
  const detail = 'A git operation in this repository is still running. Try again when it has ended.';
  throw new DomainError('conflict', 'GIT_REPOSITORY_BUSY', detail, { retryAfterSeconds: 10 });
}

/** Refuses a waiting version. The version in use stays. Idempotent. */
export async function refuseVersion(
  database: Database,
  known: App,
  { versionId, actor }: Omit<Decision, 'authority'>,
): Promise<AppVersion> {
  await transaction(database, async (tx) => {
    const app = await lockApp(tx, known);
    const version = await lockVersion(tx, app.id, versionId);
    if (version.state === 'refused') return;
    if (version.state !== 'waiting') throw replaced();
    // The changes stay recorded, because the next change builds on them.
    await execute(tx, "UPDATE app_versions SET state = 'refused', decided_by = ?, decided_at = ? WHERE id = ?", [
      actor.userId,
      new Date(),
      version.id,
    ]);
    await execute(tx, 'UPDATE apps SET waiting_id = NULL WHERE id = ?', [app.id]);
    await appendAudit(tx, app.spaceId, actor, 'app.version-refused', version.id);
  });
  return requireVersion(database, known, versionId);
}

/** Throws 404. */
export async function requireVersion(
  database: Pick<Database, 'pool'>,
  { id }: Pick<App, 'id'>,
  versionId: string,
): Promise<AppVersion> {
  const version = await findVersion(database, id, versionId);
  if (version === undefined) throw notFound('version');
  return version;
}

function replaced(): DomainError {
  const detail =
    'This version no longer waits for approval, because the app was changed or a decision was made. List its versions again.';
  return new DomainError('conflict', 'APP_VERSION_REPLACED', detail);
}
