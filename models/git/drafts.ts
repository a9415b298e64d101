import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { asRow, execute, select } from '../database/sql.ts';

/** `discarding` is one that nobody sees any more, of which something may still be left. */
export type DraftStatus = 'preparing' | 'ready' | 'discarding';

/** A further working tree of a repository, on a branch of its own, as its row says. */
export interface Draft {
  id: string;
  /** Of the repository. */
  itemId: string;
  spaceId: string;
  computerId: string;
  /** Below the computer's home. */
  treePath: string;
  branch: string;
  /** The branch of the repository that it is merged into, and where that was; null until that has been looked up. */
  baseBranch: string | null;
  baseCommit: string | null;
  /** What was checked out when it was saved last: the full name of a branch, or a commit. */
  head: string | null;
  /** Whether its working tree was ever begun. */
  isFilled: boolean;
  status: DraftStatus;
  statusAt: Date;
  /** Why it could not be saved the last time. */
  errorCode: string | null;
  errorDetail: string | null;
  mergedCommit: string | null;
  mergedAt: Date | null;
  /** When that was in it which is saved. */
  savedAt: Date | null;
  /** When the sweeper has last asked for something to be done with it. */
  lookedAt: Date;
  createdBy: string;
  createdAt: Date;
}

const columns = `id, item_id AS itemId, space_id AS spaceId, computer_id AS computerId, tree_path AS treePath, branch,
  base_branch AS baseBranch, base_commit AS baseCommit, head, is_filled AS isFilled, status, status_at AS statusAt,
  error_code AS errorCode, error_detail AS errorDetail, merged_commit AS mergedCommit, merged_at AS mergedAt,
  saved_at AS savedAt, looked_at AS lookedAt, created_by AS createdBy, created_at AS createdAt`;

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

/** All of a repository's, also those that nobody sees any more. */
export async function draftsOf({ pool }: Pick<Database, 'pool'>, itemId: string): Promise<Draft[]> {
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM git_drafts WHERE item_id = ? ORDER BY id`, [
    itemId,
  ]);
  return rows.map(draftOf);
}

/** A draft, also one that is being discarded. */
export async function findDraft({ pool }: Pick<Database, 'pool'>, id: string): Promise<Draft | undefined> {
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM git_drafts WHERE id = ?`, [id]);
  return rows[0] && draftOf(rows[0]);
}

/** A draft of the repository that has its files. Throws 404, and 409 `GIT_DRAFT_NOT_READY`. */
export async function getDraft(database: Pick<Database, 'pool'>, itemId: string, id: string): Promise<Draft> {
  const draft = await findDraft(database, id);
  if (draft === undefined || draft.itemId !== itemId || draft.status === 'discarding') throw notFound('draft');
  requirePrepared(draft);
  return draft;
}

/** Throws 409 `GIT_DRAFT_NOT_READY` for one that is still being made. */
export function requirePrepared({ status }: Pick<Draft, 'status'>): void {
  if (status !== 'ready') throw notPrepared();
}

export function notPrepared(): DomainError {
  const detail = 'The draft is still being prepared.';
  return new DomainError('conflict', 'GIT_DRAFT_NOT_READY', detail, { retryAfterSeconds: 5 });
}

/** The draft on a branch of a repository that nobody has discarded: the oldest, for there were once more. */
export async function findDraftOn(tx: Transaction, itemId: string, branch: string): Promise<Draft | undefined> {
  const sql = `SELECT ${columns} FROM git_drafts WHERE item_id = ? AND status <> 'discarding' ORDER BY id`;
  return (await select<object>(tx, sql, [itemId])).map(draftOf).find((draft) => draft.branch === branch);
}

/** A draft of the repository that nobody has discarded, locked. Throws 404. */
export async function lockDraft(tx: Transaction, itemId: string, id: string): Promise<Draft> {
  const sql = `SELECT ${columns} FROM git_drafts WHERE id = ? AND item_id = ? AND status <> 'discarding' FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [id, itemId]);
  if (row === undefined) throw notFound('draft');
  return draftOf(row);
}

const columnOf = {
  computerId: 'computer_id',
  treePath: 'tree_path',
  baseBranch: 'base_branch',
  baseCommit: 'base_commit',
  head: 'head',
  isFilled: 'is_filled',
  status: 'status',
  statusAt: 'status_at',
  errorCode: 'error_code',
  errorDetail: 'error_detail',
  mergedCommit: 'merged_commit',
  mergedAt: 'merged_at',
  savedAt: 'saved_at',
  lookedAt: 'looked_at',
} as const satisfies Partial<Record<keyof Draft, string>>;

export type DraftChanges = Partial<Pick<Draft, keyof typeof columnOf>>;

export async function changeDraft(tx: Transaction, id: string, changes: DraftChanges): Promise<void> {
  await execute(tx, 'UPDATE git_drafts SET ? WHERE id = ?', [asRow(columnOf, changes), id]);
}

/** What a step has found out about a draft. */
export const recordDraft = (database: Database, id: string, changes: DraftChanges): Promise<void> =>
  transaction(database, (tx) => changeDraft(tx, id, changes));

/** Forgets a draft that is discarded, when nothing is left of it. */
export async function forgetDraft({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await pool.query("DELETE FROM git_drafts WHERE id = ? AND status = 'discarding'", [id]);
}
