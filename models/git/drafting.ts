import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { environmentOfApp } from '../apps/app.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { chosenComputer, type ServingDeps } from '../computers/servingComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { changeDraft, type Draft, findDraftOn, lockDraft, notPrepared, requirePrepared } from './drafts.ts';
import { beginOrder, type GitDraftKind, type GitOrder, ordersOf } from './orders.ts';
import { freeDraftPath } from './placing.ts';
import { lockRepository, lockRepositoryOf, type Repository, requireReady } from './repository.ts';

/** The input of an order for a draft. */
export interface DraftInput {
  draftId: string;
  /** The message for a commit of the uncommitted work. */
  message?: string;
  /** Commit only these paths. */
  paths?: string[];
  /** The author of the commits. */
  author?: { name: string; email: string };
}

export interface DraftRequest {
  spaceId: string;
  itemId: string;
  /** The operation's id. A repeated id means the same operation. */
  id: string;
  actor: Actor & { userId: string };
  deadlineMs: number;
}

/**
 * Orders a draft of a cloned repository, on the named computer, that of the named environment, or that of the environment
 * of the app that the repository is. The repository's workflow makes it after earlier orders. A branch has one
 * draft: if that exists, returns the draft, or the operation that is making it. Throws 404 for the repository or the
 * computer, 409 `GIT_REPOSITORY_NOT_READY`, `GIT_DRAFT_NOT_READY`, `GIT_TOO_MANY_DRAFTS`, `GIT_REPOSITORY_BUSY`, or
 * `GIT_DRAFT_EXISTS` if the branch's draft is on another computer than the named one.
 */
export async function askToDraft(
  deps: ServingDeps,
  request: DraftRequest & {
    branch: string;
    name: string;
    computerId?: string | undefined;
    environmentId?: string | undefined;
    maxDrafts: number;
  },
): Promise<{ operation: Operation } | { ready: Draft }> {
  const { database } = deps;
  const { spaceId, itemId, actor, branch, computerId } = request;
  const ofApp = computerId === undefined ? await environmentOfApp(database, itemId) : undefined;
  const computer = await chosenComputer(deps, {
    spaceId,
    computerId,
    environmentId: request.environmentId ?? ofApp,
    actor,
  });
  return transaction(
    database,
    async (tx) => {
      const repository = await requireRepository(tx, request);
      const known = await operationModels(tx).Operation.findByPk(request.id, { transaction: tx });
      if (known !== null) return { operation: known };
      const open = await findDraftOn(tx, itemId, branch);
      if (open !== undefined) return openAgain(tx, open, computerId);
      await requireRoomForDraft(tx, itemId, request.maxDrafts);
      const id = newId('gitDraft');
      const now = new Date();
      const wanted = `drafts/${request.name}/${branch.replaceAll('/', '-')}`;
      const place = { computerId: computer.id, treePath: await freeDraftPath(tx, computer.id, wanted) };
      const row = {
        ...{ id, itemId, spaceId, ...place, branch, isFilled: 0, status: 'preparing', statusAt: now, lookedAt: now },
        ...{ createdBy: actor.userId, createdAt: now },
      };
      await insert(tx, 'git_drafts', row);
      const made = { kind: 'createDraft', input: { draftId: id }, action: 'draft.created' } as const;
      return { operation: await order(tx, repository, request, made) };
    },
    { retryDuplicates: true },
  );
}

/**
 * Orders a commit of a draft's changes, or its merge into the branch that it started from. Throws 404, 409
 * `GIT_REPOSITORY_NOT_READY`, `GIT_DRAFT_NOT_READY` or `GIT_REPOSITORY_BUSY`.
 */
export function askOfDraft(
  database: Database,
  request: DraftRequest & { kind: 'commitDraft' | 'mergeDraft'; input: DraftInput },
): Promise<Operation> {
  const { itemId, kind, input } = request;
  return transaction(database, async (tx) => {
    const repository = await requireRepository(tx, request);
    requirePrepared(await lockDraft(tx, itemId, input.draftId));
    const action = kind === 'mergeDraft' ? 'draft.merged' : 'draft.committed';
    return order(tx, repository, request, { kind, input, action });
  });
}

/** Hides a draft; the repository's workflow removes it later. Throws 404, and 409 `GIT_REPOSITORY_BUSY`. */
export function askToDiscardDraft(database: Database, request: DraftRequest & { draftId: string }): Promise<Operation> {
  const { spaceId, itemId, draftId } = request;
  return transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    if (repository === undefined || repository.spaceId !== spaceId) throw notFound('draft');
    await lockDraft(tx, itemId, draftId);
    await discard(tx, draftId, new Date());
    return order(tx, repository, request, { kind: 'discardDraft', input: { draftId }, action: 'draft.discarded' });
  });
}

async function requireRepository(
  tx: Transaction,
  { spaceId, itemId }: Pick<DraftRequest, 'spaceId' | 'itemId'>,
): Promise<Repository> {
  const repository = await lockRepositoryOf(tx, spaceId, itemId);
  requireReady(repository);
  return repository;
}

/** A second request for a branch gets the existing draft. */
async function openAgain(
  tx: Transaction,
  draft: Draft,
  computerId: string | undefined,
): Promise<{ operation: Operation } | { ready: Draft }> {
  if (computerId !== undefined && computerId !== draft.computerId) {
    const detail = `The branch has a draft already, ${draft.id}, on the computer ${draft.computerId}.`;
    throw new DomainError('conflict', 'GIT_DRAFT_EXISTS', detail);
  }
  if (draft.status === 'ready') return { ready: draft };
  const orders = await ordersOf(tx, draft.itemId);
  const making = orders.find(({ kind, input }) => kind === 'createDraft' && input.draftId === draft.id);
  const operation = making && (await operationModels(tx).Operation.findByPk(making.id, { transaction: tx }));
  if (operation != null) return { operation };
  throw notPrepared();
}

/** The caller holds the repository’s lock until the draft is inserted. */
async function requireRoomForDraft(tx: Transaction, itemId: string, maxDrafts: number): Promise<void> {
  const sql = 'SELECT id FROM git_drafts WHERE item_id = ? LIMIT ?';
  if ((await select(tx, sql, [itemId, maxDrafts])).length < maxDrafts) return;
  const detail = 'The repository has the maximum number of drafts. Discard one first.';
  throw new DomainError('conflict', 'GIT_TOO_MANY_DRAFTS', detail);
}

async function order(
  tx: Transaction,
  repository: Repository,
  { id, spaceId, actor, deadlineMs }: DraftRequest,
  { kind, input, action }: { kind: GitDraftKind; input: DraftInput; action: AuditAction },
): Promise<Operation> {
  const operation = await beginOrder(tx, repository, { id, kind, input: { ...input }, actor, deadlineMs });
  await appendAudit(tx, spaceId, actor, action, input.draftId);
  return operation;
}

async function discard(tx: Transaction, id: string, lookedAt: Date): Promise<void> {
  await changeDraft(tx, id, { status: 'discarding', statusAt: new Date(), lookedAt });
}

/** Makes the draft due for the next sweep. */
const longAgo = new Date(0);

/** Updates the draft in the transaction that ends an order successfully. */
export async function settleDraft(tx: Transaction, { kind, input, result }: GitOrder): Promise<void> {
  const { draftId } = input as unknown as DraftInput;
  if (kind === 'createDraft') {
    const sql = "UPDATE git_drafts SET status = 'ready', status_at = ? WHERE id = ? AND status = 'preparing'";
    await execute(tx, sql, [new Date(), draftId]);
  } else if (kind === 'mergeDraft') {
    await changeDraft(tx, draftId, { mergedCommit: String(result?.commit ?? ''), mergedAt: new Date() });
  }
}

/** The same for a failed order. A draft that could not be made is discarded. */
export async function settleFailedDraft(
  tx: Transaction,
  { kind, input }: GitOrder,
  { code, detail }: { code: string; detail: string },
): Promise<void> {
  const { draftId } = input as unknown as DraftInput;
  if (kind === 'createDraft') await discard(tx, draftId, longAgo);
  else if (kind === 'saveDraft') {
    await changeDraft(tx, draftId, { errorCode: code, errorDetail: detail.slice(0, 500) });
  }
}
