import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

export type RepositoryStatus = 'cloning' | 'ready' | 'failed';

/** Which blobs of a partial clone come when they are needed. */
export type RepositoryFilter = 'blob:none' | `blob:limit=${number}`;

/** How far a clone, a fetch or a push is. */
export interface RepositoryProgress {
  phase: string;
  percent: number | null;
  bytes: number;
  objects: number;
  totalObjects: number | null;
}

/** What a check-out of the commit that was cloned brings. */
export interface RepositoryFacts {
  files: number;
  bytes: number;
  lfsPointers: number;
  submodules: string[];
}

/** A repository as its row says. It is an item of the drive; its name and place are there. */
export interface Repository {
  itemId: string;
  spaceId: string;
  /** Where its working tree is, or will be. */
  computerId: string;
  /** Below the computer's home. */
  treePath: string;
  /** The version that the tree was made of, or was saved as last; null where it was never begun. */
  treeVersion: number | null;
  /** Without user and password. */
  url: string;
  credentialId: string | null;
  /** What was asked for; null is the remote's own. */
  branch: string | null;
  depth: number | null;
  filter: RepositoryFilter | null;
  /** Of its last clone. */
  operationId: string;
  status: RepositoryStatus;
  statusAt: Date;
  errorCode: string | null;
  errorDetail: string | null;
  progress: RepositoryProgress | null;
  /** Counts what has been saved; 0 is nothing. */
  version: number;
  defaultBranch: string | null;
  facts: RepositoryFacts | null;
  createdBy: string;
  createdAt: Date;
  /** Its item is gone for good; the repository is to follow. */
  removedAt: Date | null;
}

export const repositoryColumns = `item_id AS itemId, space_id AS spaceId, computer_id AS computerId, tree_path AS treePath,
  tree_version AS treeVersion, url, credential_id AS credentialId, branch, depth, filter, operation_id AS operationId, status, status_at AS statusAt,
  error_code AS errorCode, error_detail AS errorDetail, progress, version, default_branch AS defaultBranch, facts,
  created_by AS createdBy, created_at AS createdAt, removed_at AS removedAt`;

function repositoryOf(row: object): Repository {
  const { progress, facts, ...rest } = row as Omit<Repository, 'progress' | 'facts'> & {
    progress: string | null;
    facts: string | null;
  };
  return {
    ...rest,
    progress: progress === null ? null : (JSON.parse(progress) as RepositoryProgress),
    facts: facts === null ? null : (JSON.parse(facts) as RepositoryFacts),
  };
}

/** A repository, also one whose item is gone. */
export async function findRepository(
  { pool }: Pick<Database, 'pool'>,
  itemId: string,
): Promise<Repository | undefined> {
  const sql = `SELECT ${repositoryColumns} FROM git_repositories WHERE item_id = ?`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [itemId]);
  return rows[0] && repositoryOf(rows[0]);
}

/** Those of the ids that are repositories' items, also where the item is gone. */
export async function knownRepositories(
  { pool }: Pick<Database, 'pool'>,
  itemIds: readonly string[],
): Promise<Set<string>> {
  const sql = 'SELECT item_id AS itemId FROM git_repositories WHERE item_id IN (?)';
  const [rows] = await pool.query<RowDataPacket[]>(sql, [itemIds]);
  return new Set(rows.map(({ itemId }) => String(itemId)));
}

/** A repository of the space whose item is not gone for good. Throws 404. */
export async function getRepository(database: Database, spaceId: string, itemId: string): Promise<Repository> {
  const found = await findRepository(database, itemId);
  if (found === undefined || found.spaceId !== spaceId || found.removedAt !== null) throw notFound('repository');
  return found;
}

/** Throws 409 `GIT_REPOSITORY_NOT_READY` for one that has not been cloned. */
export function requireReady({ status }: Pick<Repository, 'status'>): void {
  if (status === 'ready') return;
  if (status === 'failed') {
    const failed = 'The clone of the repository has failed. Try it again with retry-clone first.';
    throw new DomainError('conflict', 'GIT_REPOSITORY_NOT_READY', failed);
  }
  const detail = 'The repository is still being cloned.';
  throw new DomainError('conflict', 'GIT_REPOSITORY_NOT_READY', detail, { retryAfterSeconds: 5 });
}

/** The row of a repository, locked. */
export async function lockRepository(tx: Transaction, itemId: string): Promise<Repository | undefined> {
  const sql = `SELECT ${repositoryColumns} FROM git_repositories WHERE item_id = ? FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [itemId]);
  return row && repositoryOf(row);
}

const columnOf = {
  computerId: 'computer_id',
  treePath: 'tree_path',
  treeVersion: 'tree_version',
  credentialId: 'credential_id',
  operationId: 'operation_id',
  status: 'status',
  statusAt: 'status_at',
  errorCode: 'error_code',
  errorDetail: 'error_detail',
  progress: 'progress',
  version: 'version',
  defaultBranch: 'default_branch',
  facts: 'facts',
  removedAt: 'removed_at',
} as const satisfies Partial<Record<keyof Repository, string>>;

/** Changes a locked repository, in its row and in this object. `statusAt` follows the status. */
export async function changeRepository(
  tx: Transaction,
  repository: Repository,
  changes: Partial<Pick<Repository, keyof typeof columnOf>>,
): Promise<void> {
  const all = { ...changes };
  if (all.status !== undefined && all.status !== repository.status) all.statusAt = new Date();
  const row: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(all)) {
    const isJson = (field === 'progress' || field === 'facts') && value !== null;
    row[columnOf[field as keyof typeof columnOf]] = isJson ? JSON.stringify(value) : value;
  }
  Object.assign(repository, all);
  await execute(tx, 'UPDATE git_repositories SET ? WHERE item_id = ?', [row, repository.itemId]);
}

/** Shows the progress of a repository that is not removed. */
export async function showProgress(
  { pool }: Pick<Database, 'pool'>,
  itemId: string,
  progress: RepositoryProgress,
): Promise<void> {
  const sql = 'UPDATE git_repositories SET progress = ? WHERE item_id = ? AND removed_at IS NULL';
  await pool.query(sql, [JSON.stringify(progress), itemId]);
}
