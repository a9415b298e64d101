import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { noteAppChange } from '../apps/changes.ts';
import { type Actor, apiKeyIdOf } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type Operation, type OperationEnd, type OperationKind, operationModels } from '../operations/operation.ts';
import type { Repository } from './repository.ts';

/** The kinds of orders for a repository. */
export type GitOrderKind = Extract<OperationKind, 'cloneRepository' | 'retryClone'> | GitChangeKind | GitDraftKind;

/** The orders that need a cloned repository. */
export type GitChangeKind = Extract<
  OperationKind,
  'fillRepository' | 'createBranch' | 'commitChanges' | 'checkoutBranch' | 'pushRepository' | 'pullRepository'
>;

/** The orders for one draft of a repository. Their input names the draft. */
export type GitDraftKind = Extract<
  OperationKind,
  'createDraft' | 'saveDraft' | 'commitDraft' | 'mergeDraft' | 'discardDraft'
>;

/** An operation's order for a repository. A repository does its orders one after the other, by their ids. */
export interface GitOrder {
  /** The operation's id. */
  id: string;
  itemId: string;
  kind: GitOrderKind;
  input: Record<string, unknown>;
  /** The API key that asked; null for a person who is signed in. */
  apiKeyId: string | null;
  /** How many steps are done. */
  step: number;
  result: Record<string, unknown> | null;
  /** Why the last attempt failed, for people. */
  failure: { code: string; detail: string } | null;
  createdAt: Date;
  deadlineAt: Date;
}

/** The API key is stored in the column of the input. */
type Asked = Pick<GitOrder, 'apiKeyId'>;

const maxWaiting = 50;

const columns = 'id, item_id, kind, input, step, result, failure, created_at, deadline_at';

function orderOf(row: object): GitOrder {
  const { input, result, failure, ...rest } = row as Omit<GitOrder, 'input' | 'apiKeyId' | 'result' | 'failure'> & {
    input: string;
    result: string | null;
    failure: string | null;
  };
  const { apiKeyId = null, ...said } = JSON.parse(input) as Record<string, unknown> & Partial<Asked>;
  return {
    ...rest,
    input: said,
    apiKeyId,
    result: result === null ? null : (JSON.parse(result) as Record<string, unknown>),
    failure: failure === null ? null : (JSON.parse(failure) as GitOrder['failure']),
  };
}

/**
 * Begins an operation of a locked repository. A repeated id means the same operation. Throws 409 `GIT_REPOSITORY_BUSY`.
 */
export async function beginOrder(
  tx: Transaction,
  { itemId, spaceId }: Pick<Repository, 'itemId' | 'spaceId'>,
  order: {
    id?: string;
    kind: GitOrderKind;
    input: Record<string, unknown>;
    actor: Pick<Actor, 'credentialId'> & { userId: string };
    deadlineMs: number;
  },
): Promise<Operation> {
  const { Operation } = operationModels(tx);
  const { kind, input, actor, deadlineMs } = order;
  const { userId } = actor;
  const known = order.id === undefined ? null : await Operation.findByPk(order.id, { transaction: tx });
  if (known !== null) return known;
  const waiting = await select(tx, 'SELECT id FROM git_orders WHERE item_id = ? LIMIT ?', [itemId, maxWaiting]);
  if (waiting.length === maxWaiting) {
    const detail = 'Too many operations of this repository are waiting. Try again when some have ended.';
    throw new DomainError('conflict', 'GIT_REPOSITORY_BUSY', detail, { retryAfterSeconds: 10 });
  }
  const operation = await Operation.begin(
    { kind, spaceId, userId, subjectId: itemId, ...(order.id !== undefined && { id: order.id }) },
    tx,
  );
  await noteKeyChange(tx, { itemId }, { kind, actor });
  const now = new Date();
  await insert(tx, 'git_orders', {
    id: operation.id,
    itemId,
    spaceId,
    kind,
    input: { ...input, ...apiKeyOf(actor) },
    step: 0,
    createdAt: now,
    deadlineAt: new Date(now.getTime() + deadlineMs),
  });
  return operation;
}

/** The orders that put other files into the working tree. */
const treeKinds: readonly GitOrderKind[] = [
  'fillRepository',
  'createBranch',
  'checkoutBranch',
  'pullRepository',
  'mergeDraft',
];

/** Whether such an order is waiting. */
export async function isTreeToChange(tx: Transaction, itemId: string): Promise<boolean> {
  const sql = 'SELECT id FROM git_orders WHERE item_id = ? AND kind IN (?) LIMIT 1';
  return (await select(tx, sql, [itemId, treeKinds])).length > 0;
}

/** After a change by an API key, apps in the repository run with no more rights than the key has. */
async function noteKeyChange(
  tx: Transaction,
  { itemId }: Pick<Repository, 'itemId'>,
  { kind, actor }: { kind: GitOrderKind; actor: Pick<Actor, 'credentialId'> & { userId: string } },
): Promise<void> {
  const { apiKeyId } = apiKeyOf(actor);
  if (apiKeyId === undefined || !treeKinds.includes(kind)) return;
  const [key] = await select<{ scopes: string }>(tx, 'SELECT scopes FROM api_keys WHERE id = ?', [apiKeyId]);
  const by = { apiKeyId, scopes: JSON.parse(key?.scopes ?? '[]') as string[], turnId: null };
  await noteAppChange(tx, [itemId], { userId: actor.userId, by });
}

/** Limits a new app in a locked repository to the rights of the API keys whose orders are still waiting. */
export async function noteOrderedChanges(tx: Transaction, itemId: string): Promise<void> {
  const sql = `SELECT o.kind, o.input, p.user_id FROM git_orders o JOIN operations p ON p.id = o.id
    WHERE o.item_id = ? ORDER BY o.id`;
  const orders = await select<{ kind: GitOrderKind; input: string; userId: string }>(tx, sql, [itemId]);
  for (const { kind, input, userId } of orders) {
    const { apiKeyId = null } = JSON.parse(input) as Partial<Asked>;
    await noteKeyChange(tx, { itemId }, { kind, actor: { userId, credentialId: apiKeyId } });
  }
}

function apiKeyOf(actor: Pick<Actor, 'credentialId'>): Partial<Asked> {
  const apiKeyId = apiKeyIdOf(actor);
  return apiKeyId === null ? {} : { apiKeyId };
}

const cloneKinds: readonly GitOrderKind[] = ['cloneRepository', 'retryClone'];

/** Whether an order clones the repository, which is `ready` after it. */
export function isClone({ kind }: Pick<GitOrder, 'kind'>): boolean {
  return cloneKinds.includes(kind);
}

const remoteKinds: readonly GitOrderKind[] = [...cloneKinds, 'pullRepository', 'pushRepository'];
/** The orders that need the remote only if the clone is partial. */
const partialKinds: readonly GitOrderKind[] = ['createBranch', 'checkoutBranch', 'createDraft'];

/** Whether an order talks to a git server, and so takes a slot that all spaces share. */
export function isRemote({ kind }: Pick<GitOrder, 'kind'>, { filter }: Pick<Repository, 'filter'>): boolean {
  return remoteKinds.includes(kind) || (filter !== null && partialKinds.includes(kind));
}

/**
 * Throws 409 if the limit of a space's repositories that wait for git servers is reached: `GIT_TOO_MANY_CLONES` for a
 * clone, else `GIT_TOO_MANY_EXCHANGES`. A repository that already waits may get more orders, because it does one at a
 * time. The caller holds the drive's lock until the order has begun.
 */
export async function requireRoomForRemote(
  tx: Transaction,
  { spaceId, itemId, kind }: { spaceId: string; itemId: string; kind: GitOrderKind },
  most: number,
): Promise<void> {
  const sql = `SELECT DISTINCT o.item_id FROM git_orders o JOIN git_repositories r ON r.item_id = o.item_id
    WHERE o.space_id = ? AND o.item_id <> ? AND (o.kind IN (?) OR (o.kind IN (?) AND r.filter IS NOT NULL)) LIMIT ?`;
  if ((await select(tx, sql, [spaceId, itemId, remoteKinds, partialKinds, most])).length < most) return;
  const detail = 'Too many repositories of the space are waiting for git servers. Try again when some have finished.';
  const code = isClone({ kind }) ? 'GIT_TOO_MANY_CLONES' : 'GIT_TOO_MANY_EXCHANGES';
  throw new DomainError('conflict', code, detail, { retryAfterSeconds: 10 });
}

/** The order that is to be done next. */
export async function oldestOrder(tx: Transaction, itemId: string): Promise<GitOrder | undefined> {
  const sql = `SELECT ${columns} FROM git_orders WHERE item_id = ? ORDER BY id LIMIT 1`;
  const [row] = await select<object>(tx, sql, [itemId]);
  return row && orderOf(row);
}

export async function findOrder({ pool }: Pick<Database, 'pool'>, id: string): Promise<GitOrder | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM git_orders WHERE id = ?`, [id]);
  return row && orderOf(row);
}

/** All waiting orders of a repository, oldest first. */
export async function ordersOf(tx: Transaction, itemId: string): Promise<GitOrder[]> {
  const rows = await select<object>(tx, `SELECT ${columns} FROM git_orders WHERE item_id = ? ORDER BY id`, [itemId]);
  return rows.map(orderOf);
}

/** Ends an order and its operation. */
export async function endOrder(tx: Transaction, { id }: Pick<GitOrder, 'id'>, end: OperationEnd): Promise<void> {
  await execute(tx, 'DELETE FROM git_orders WHERE id = ?', [id]);
  await operationModels(tx).Operation.end(id, end, tx);
}

/** Keeps why an attempt failed: the workflow's history has only the code. */
export async function noteFailure(
  { pool }: Pick<Database, 'pool'>,
  id: string,
  failure: NonNullable<GitOrder['failure']>,
): Promise<void> {
  await execute(pool, 'UPDATE git_orders SET failure = ? WHERE id = ?', [JSON.stringify(failure), id]);
}

/** Keeps the result of a step until the order ends, when it becomes the operation’s result. */
export async function keepResult(
  { pool }: Pick<Database, 'pool'>,
  id: string,
  result: Record<string, unknown>,
): Promise<void> {
  await execute(pool, 'UPDATE git_orders SET result = ? WHERE id = ?', [JSON.stringify(result), id]);
}

/** Whether an order was cancelled or has ended, or its repository was removed. */
export async function isCalledOff({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = `SELECT 1 FROM git_orders o
       JOIN git_repositories r ON r.item_id = o.item_id AND r.removed_at IS NULL
       JOIN operations p ON p.id = o.id AND p.status = 'running' AND p.cancel_requested_at IS NULL
      WHERE o.id = ?`;
  const rows = await select(pool, sql, [id]);
  return rows.length === 0;
}
