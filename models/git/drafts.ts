import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';

/** A `discarding` draft is no longer visible, and may have leftovers. */
export type DraftStatus = 'preparing' | 'ready' | 'discarding';

/** The row of a draft: a further working tree of a repository, on a branch of its own. */
export interface Draft {
  id: string;
  /** The repository's item. */
  itemId: string;
  spaceId: string;
  computerId: string;
  /** Below the computer's home. */
  treePath: string;
  branch: string;
  /** The repository's branch from which it starts and into which it merges, and that branch's commit; null at first. */
  baseBranch: string | null;
  baseCommit: string | null;
  /** The full name of the branch, or the commit, that was checked out at the last save. */
  head: string | null;
  /** Whether its working tree was ever begun. */
  isFilled: boolean;
  status: DraftStatus;
  statusAt: Date;
  /** Why the last save failed. */
  errorCode: string | null;
  errorDetail: string | null;
  mergedCommit: string | null;
  mergedAt: Date | null;
  /** The time of the saved contents. */
  savedAt: Date | null;
  /** When the sweeper last ordered something for it. */
  lookedAt: Date;
  createdBy: string;
  createdAt: Date;
}

const columns = `id, item_id, space_id, computer_id, tree_path, branch, base_branch, base_commit, head, is_filled,
  status, status_at, error_code, error_detail, merged_commit, merged_at, saved_at, looked_at, created_by, created_at`;

function draftOf(row: object): Draft {
  const draft = row as Omit<Draft, 'isFilled'> & { isFilled: number };
  return { ...draft, isFilled: draft.isFilled !== 0 };
}

/** A repository's drafts, oldest first. */
export async function listDrafts(
  database: Pick<Database, 'pool'>,
  itemId: string,
  page: PageRequest,
): Promise<Page<Draft>> {
  const sql = `SELECT ${columns} FROM git_drafts WHERE item_id = ? AND status <> 'discarding'`;
  return readPage(database, page, { sql, values: [itemId], by: 'id', order: 'asc', read: draftOf });
}

/** All drafts of a repository, even those that are being discarded. */
export async function draftsOf({ pool }: Pick<Database, 'pool'>, itemId: string): Promise<Draft[]> {
  const rows = await select(pool, `SELECT ${columns} FROM git_drafts WHERE item_id = ? ORDER BY id`, [itemId]);
  return rows.map(draftOf);
}

/** A draft, even one that is being discarded. */
export async function findDraft({ pool }: Pick<Database, 'pool'>, id: string): Promise<Draft | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM git_drafts WHERE id = ?`, [id]);
  return row && draftOf(row);
}

/** A prepared draft of the repository. Throws 404, and 409 `GIT_DRAFT_NOT_READY`. */
export async function getDraft(database: Pick<Database, 'pool'>, itemId: string, id: string): Promise<Draft> {
  const draft = await findDraft(database, id);
  if (draft === undefined || draft.itemId !== itemId || draft.status === 'discarding') throw notFound('draft');
  requirePrepared(draft);
  return draft;
}

/** Throws 409 `GIT_DRAFT_NOT_READY` for a draft that is still being made. */
export function requirePrepared({ status }: Pick<Draft, 'status'>): void {
  if (status !== 'ready') throw notPrepared();
}

export function notPrepared(): DomainError {
  const detail = 'The draft is still being prepared.';
  return new DomainError('conflict', 'GIT_DRAFT_NOT_READY', detail, { retryAfterSeconds: 5 });
}

/** The draft on a branch of a repository, if it is not discarded. */
export async function findDraftOn(tx: Transaction, itemId: string, branch: string): Promise<Draft | undefined> {
  const sql = `SELECT ${columns} FROM git_drafts WHERE item_id = ? AND status <> 'discarding' ORDER BY id`;
  return (await select<object>(tx, sql, [itemId])).map(draftOf).find((draft) => draft.branch === branch);
}

/** A draft of the repository that is not discarded, locked. Throws 404. */
export async function lockDraft(tx: Transaction, itemId: string, id: string): Promise<Draft> {
  const sql = `SELECT ${columns} FROM git_drafts WHERE id = ? AND item_id = ? AND status <> 'discarding' FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [id, itemId]);
  if (row === undefined) throw notFound('draft');
  return draftOf(row);
}

export type DraftChanges = Partial<Omit<Draft, 'id' | 'itemId' | 'spaceId' | 'branch' | 'createdBy' | 'createdAt'>>;

export async function changeDraft(tx: Transaction, id: string, changes: DraftChanges): Promise<void> {
  await execute(tx, 'UPDATE git_drafts SET ? WHERE id = ?', [changes, id]);
}

/** Records a step's findings about a draft. */
export const recordDraft = (database: Database, id: string, changes: DraftChanges): Promise<void> =>
  transaction(database, (tx) => changeDraft(tx, id, changes));

/** Deletes the row of a discarded draft. Its tree and its refs must be removed already. */
export async function forgetDraft({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(pool, "DELETE FROM git_drafts WHERE id = ? AND status = 'discarding'", [id]);
}
