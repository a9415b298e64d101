import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

export type RepositoryStatus = 'cloning' | 'ready' | 'failed';

/** Which files of a partial clone come only when they are needed. */
export type RepositoryFilter = 'blob:none' | `blob:limit=${number}`;

/** The progress of a clone, a fetch or a push. */
export interface RepositoryProgress {
  phase: string;
  percent: number | null;
  bytes: number;
  objects: number;
  totalObjects: number | null;
}

/** The contents of a checkout of the cloned commit. */
export interface RepositoryFacts {
  files: number;
  bytes: number;
  lfsPointers: number;
  submodules: string[];
}

/** The row of a repository. It is an item of the drive, which has its name and place. */
export interface Repository {
  itemId: string;
  spaceId: string;
  /** The computer on which its working tree is, or will be. */
  computerId: string;
  /** Below the computer's home. */
  treePath: string;
  /** The version that the tree was made from or last saved as; null if the tree was never begun. */
  treeVersion: number | null;
  /** Without user and password. */
  url: string;
  credentialId: string | null;
  /** The requested branch; null means the remote's default. */
  branch: string | null;
  depth: number | null;
  filter: RepositoryFilter | null;
  /** The operation of its last clone. */
  operationId: string;
  status: RepositoryStatus;
  statusAt: Date;
  errorCode: string | null;
  errorDetail: string | null;
  progress: RepositoryProgress | null;
  /** Counts the saved states; 0 means that nothing is saved. */
  version: number;
  defaultBranch: string | null;
  facts: RepositoryFacts | null;
  createdBy: string;
  createdAt: Date;
  /** When its item was deleted for good. The repository's workflow then removes the rest. */
  removedAt: Date | null;
}

const columns = `item_id, space_id, computer_id, tree_path, tree_version, url, credential_id, branch, depth, filter,
  operation_id, status, status_at, error_code, error_detail, progress, version, default_branch, facts, created_by,
  created_at, removed_at`;

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

/** A repository, even if its item is gone. */
export async function findRepository(
  { pool }: Pick<Database, 'pool'>,
  itemId: string,
): Promise<Repository | undefined> {
  const sql = `SELECT ${columns} FROM git_repositories WHERE item_id = ?`;
  const [row] = await select(pool, sql, [itemId]);
  return row && repositoryOf(row);
}

/** The ids that belong to repositories, even if their items are gone. */
export async function knownRepositories(
  { pool }: Pick<Database, 'pool'>,
  itemIds: readonly string[],
): Promise<Set<string>> {
  const sql = 'SELECT item_id FROM git_repositories WHERE item_id IN (?)';
  const rows = await select(pool, sql, [itemIds]);
  return new Set(rows.map(({ itemId }) => String(itemId)));
}

/** A repository of the space whose item is not gone for good. Throws 404. */
export async function getRepository(database: Database, spaceId: string, itemId: string): Promise<Repository> {
  const found = await findRepository(database, itemId);
  if (found === undefined || found.spaceId !== spaceId || found.removedAt !== null) throw notFound('repository');
  return found;
}

/** Throws 409 `GIT_REPOSITORY_NOT_READY` for a repository that is not cloned. */
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
  const sql = `SELECT ${columns} FROM git_repositories WHERE item_id = ? FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [itemId]);
  return row && repositoryOf(row);
}

/** The same for a repository of the space whose item is not gone for good. Throws 404. */
export async function lockRepositoryOf(tx: Transaction, spaceId: string, itemId: string): Promise<Repository> {
  const repository = await lockRepository(tx, itemId);
  if (repository === undefined || repository.spaceId !== spaceId || repository.removedAt !== null) {
    throw notFound('repository');
  }
  return repository;
}

type Changeable = Omit<
  Repository,
  'itemId' | 'spaceId' | 'url' | 'branch' | 'depth' | 'filter' | 'createdBy' | 'createdAt'
>;

/** Changes a locked repository, in its row and in this object. `statusAt` follows the status. */
export async function changeRepository(
  tx: Transaction,
  repository: Repository,
  changes: Partial<Changeable>,
): Promise<void> {
  const isMoved = changes.status !== undefined && changes.status !== repository.status;
  const all = { ...changes, ...(isMoved && { statusAt: new Date() }) };
  Object.assign(repository, all);
  await execute(tx, 'UPDATE git_repositories SET ? WHERE item_id = ?', [all, repository.itemId]);
}

/** Shows the progress of a repository that is not removed. */
export async function showProgress(
  { pool }: Pick<Database, 'pool'>,
  itemId: string,
  progress: RepositoryProgress,
): Promise<void> {
  const sql = 'UPDATE git_repositories SET progress = ? WHERE item_id = ? AND removed_at IS NULL';
  await execute(pool, sql, [JSON.stringify(progress), itemId]);
}

/** Where the working trees of repositories are, below the home of their computer, by item. */
export async function treePathsOf(
  { pool }: Pick<Database, 'pool'>,
  itemIds: readonly string[],
): Promise<Map<string, string>> {
  if (itemIds.length === 0) return new Map();
  const sql = 'SELECT item_id, tree_path FROM git_repositories WHERE item_id IN (?)';
  const rows = await select<{ itemId: string; treePath: string }>(pool, sql, [itemIds]);
  return new Map(rows.map(({ itemId, treePath }) => [itemId, treePath]));
}
