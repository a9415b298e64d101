import { createHash } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import type { AppAuthor } from './changes.ts';
import type { AppManifest } from './manifest.ts';
import type { WhyItWaits } from './versionRules.ts';

/** A `replaced` version was in use, or waited, before another one. */
export type VersionState = 'in_use' | 'waiting' | 'refused' | 'replaced';

/** A folder's files, by their paths below it. */
export type AppFiles = Record<string, { objectKey: string; sha256: string }>;

/** The content of an app at one time. */
export interface AppContent {
  manifest: AppManifest;
  manifestTag: string;
  /** Null for a repository, because the files of a working tree are not kept. */
  files: AppFiles | null;
}

/** Content of an app that was taken into use, or waits for approval. */
export interface AppVersion extends AppContent {
  id: string;
  appId: string;
  spaceId: string;
  state: VersionState;
  contentHash: string;
  /** The authors of the changes since the version that was in use then. */
  authors: AppAuthor[];
  reasons: WhyItWaits[];
  /** The user who took it into use, and the limits of its runs. Null if it was never in use. */
  userId: string | null;
  authority: Authority;
  createdAt: Date;
  decidedBy: string | null;
  decidedAt: Date | null;
}

/** The number of versions that an app keeps. */
const mostKept = 20;

const columns = `id, app_id, space_id, state, content_hash, manifest, manifest_tag, files, authors, reasons, user_id,
  api_key_id, scopes, created_at, decided_by, decided_at`;

function versionOf(row: object): AppVersion {
  const { manifest, files, authors, reasons, apiKeyId, scopes, ...rest } = row as AppVersion &
    Record<'manifest' | 'authors' | 'reasons', string> &
    Record<'files' | 'apiKeyId' | 'scopes', string | null>;
  return {
    ...(rest as unknown as AppVersion),
    manifest: JSON.parse(manifest) as AppManifest,
    files: files === null ? null : (JSON.parse(files) as AppFiles),
    authors: JSON.parse(authors) as AppAuthor[],
    reasons: JSON.parse(reasons) as WhyItWaits[],
    authority: { apiKeyId, scopes: scopes === null ? null : (JSON.parse(scopes) as string[]) },
  };
}

/** Equal for equal content, wherever it was read. Changes tell apart contents of a working tree. */
export function contentHashOf(
  { manifest, files }: Pick<AppContent, 'manifest' | 'files'>,
  changes: readonly { id: string; number: number }[] = [],
): string {
  const hash = createHash('sha256').update(JSON.stringify(manifest));
  for (const { id, number } of changes) hash.update(`\0${id}\0${number}`);
  for (const path of Object.keys(files ?? {}).sort()) hash.update(`\0${path}\0${files?.[path]?.sha256}`);
  return hash.digest('hex');
}

export async function findVersion(
  { pool }: Pick<Database, 'pool'>,
  appId: string,
  id: string,
): Promise<AppVersion | undefined> {
  const sql = `SELECT ${columns} FROM app_versions WHERE id = ? AND app_id = ?`;
  const [row] = await select(pool, sql, [id, appId]);
  return row && versionOf(row);
}

/** Throws 404. */
export async function lockVersion(tx: Transaction, appId: string, id: string): Promise<AppVersion> {
  const sql = `SELECT ${columns} FROM app_versions WHERE id = ? AND app_id = ? FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [id, appId]);
  if (row === undefined) throw notFound('version');
  return versionOf(row);
}

/** Lists an app's versions, newest first, without their files. */
export async function listVersions(
  database: Pick<Database, 'pool'>,
  appId: string,
  page: PageRequest,
): Promise<Page<AppVersion>> {
  const sql = `SELECT ${columns.replace('files', 'NULL AS files')} FROM app_versions WHERE app_id = ?`;
  return readPage(database, page, { sql, values: [appId], by: 'id', order: 'desc', read: versionOf });
}

/** Adds a version that the caller puts in use or lets wait. Deletes versions beyond the limit. */
export async function addVersion(
  tx: Transaction,
  app: { id: string; spaceId: string; baseId: string | null },
  version: AppContent & Pick<AppVersion, 'contentHash' | 'authors' | 'reasons'>,
): Promise<string> {
  const { manifest, manifestTag, files, contentHash, authors, reasons } = version;
  const id = newId('appVersion');
  await insert(tx, 'app_versions', {
    id,
    appId: app.id,
    spaceId: app.spaceId,
    state: 'waiting',
    contentHash,
    manifest,
    manifestTag,
    files,
    authors,
    reasons,
    createdAt: new Date(),
  });
  const old = await select<{ id: string }>(
    tx,
    'SELECT id FROM app_versions WHERE app_id = ? ORDER BY id DESC LIMIT 100 OFFSET ?',
    [app.id, mostKept],
  );
  const gone = old.map((row) => row.id);
  const forget = "DELETE FROM app_versions WHERE id IN (?) AND state <> 'in_use' AND id <> ?";
  if (gone.length > 0) await execute(tx, forget, [gone, app.baseId ?? '']);
  return id;
}

export async function setVersionState(tx: Transaction, id: string | null, state: VersionState): Promise<void> {
  if (id !== null) await execute(tx, 'UPDATE app_versions SET state = ? WHERE id = ?', [state, id]);
}
