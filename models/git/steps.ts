import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type OperationEnd, operationModels } from '../operations/operation.ts';
import { settleDraft, settleFailedDraft } from './drafting.ts';
import { endOrder, findOrder, type GitOrder, type GitOrderKind, isClone, oldestOrder, ordersOf } from './orders.ts';
import { changeRepository, lockRepository, type Repository } from './repository.ts';

/**
 * The steps of orders. Each may run twice and has the same effect as once. `restore` fetches the files that a partial
 * clone's mirror lacks to make the working tree, `fill` makes the tree if there is none, `files` fetches the files that
 * the next commit in the tree needs, `change` changes the tree, `save` brings the tree's commits and refs to the
 * mirror, and `update` brings the mirror's to the tree. Steps with `Draft` in their names are for a draft's tree.
 * `join` makes the commit in the mirror that merges a draft.
 */
export type OrderStep =
  | 'clone'
  | 'restore'
  | 'fill'
  | 'files'
  | 'change'
  | 'save'
  | 'fetch'
  | 'update'
  | 'push'
  | 'openDraft'
  | 'restoreDraft'
  | 'fillDraft'
  | 'saveDraft'
  | 'updateDraft'
  | 'join'
  | 'dropDraft';

/** The next step of a repository's workflow. */
export type RepositoryStep =
  | { do: 'rest' }
  /** Its item is gone for good. */
  | { do: 'remove' }
  | { do: OrderStep; orderId: string; at: number; deadlineMs: number };

/** The end of a step. Without a code, the step succeeded. */
export interface RepositoryStepEnd {
  itemId: string;
  orderId: string;
  step: OrderStep;
  /**
   * The step's place in its order, since an order may have a step twice. Absent in reports of workflows from before it
   * was said.
   */
  at?: number | undefined;
  code?: string;
}

/** The code of a cancelled order. */
export const calledOff = 'CALLED_OFF';

const stepsOf: Readonly<Record<GitOrderKind, readonly OrderStep[]>> = {
  cloneRepository: ['clone'],
  retryClone: ['clone'],
  fillRepository: ['restore', 'fill'],
  createBranch: ['restore', 'fill', 'files', 'change', 'save'],
  commitChanges: ['restore', 'fill', 'change', 'save'],
  checkoutBranch: ['restore', 'fill', 'files', 'change', 'save'],
  // `save` comes first, so that commits made at a terminal are pushed too.
  pushRepository: ['restore', 'fill', 'save', 'push', 'update'],
  pullRepository: ['restore', 'fill', 'save', 'fetch', 'update', 'files', 'change', 'save'],
  createDraft: ['restore', 'fill', 'save', 'openDraft', 'files', 'fillDraft'],
  // A draft that is missing on its computer is first restored from its saved state.
  saveDraft: ['restoreDraft', 'fillDraft', 'saveDraft'],
  // `saveDraft` makes the commit.
  commitDraft: ['restoreDraft', 'fillDraft', 'saveDraft'],
  // Only `change` moves the branch, together with its files if there is a tree. Earlier steps leave it as it is.
  mergeDraft: [
    'restore',
    'fill',
    'save',
    'restoreDraft',
    'fillDraft',
    'saveDraft',
    'updateDraft',
    'join',
    'update',
    'change',
    'save',
  ],
  discardDraft: ['dropDraft'],
};

/** The deadline of an automatic save after it was ordered, once the save begins. */
const saveMs = 30 * 60_000;

/** The shortest time for a step, even if the order's deadline is nearer. */
const leastStepMs = 5_000;

const removed: OperationEnd = {
  status: 'failed',
  code: 'GIT_REPOSITORY_REMOVED',
  detail: 'The repository was deleted in the meantime.',
};

/** Returns the first step of the oldest order that is not done. Orders that are over, cancelled or late end here. */
export async function nextRepositoryStep(database: Database, itemId: string): Promise<RepositoryStep> {
  return transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    if (repository === undefined) {
      await endOperationsOf(tx, itemId);
      return { do: 'rest' };
    }
    if (repository.removedAt !== null) {
      for (const order of await ordersOf(tx, itemId)) await endOrder(tx, order, removed);
      return { do: 'remove' };
    }
    for (;;) {
      const order = await oldestOrder(tx, itemId);
      if (order === undefined) return { do: 'rest' };
      const operation = await operationModels(tx).Operation.findByPk(order.id, { transaction: tx });
      const next = firstFrom(order.step, repository, order);
      if (operation === null || operation.status !== 'running') {
        await execute(tx, 'DELETE FROM git_orders WHERE id = ?', [order.id]);
      } else if (operation.cancelRequestedAt !== null) await fail(tx, repository, order, calledOff);
      else if (Date.now() > order.deadlineAt.getTime()) await fail(tx, repository, order, 'TIMED_OUT');
      else if (next === undefined) await succeed(tx, repository, order);
      else {
        if (next.at > order.step) await goTo(tx, order, next.at);
        const deadlineAt = order.kind === 'saveDraft' ? await giveTime(tx, order) : order.deadlineAt;
        const deadlineMs = Math.max(leastStepMs, deadlineAt.getTime() - Date.now());
        return { do: next.step, orderId: order.id, at: next.at, deadlineMs };
      }
    }
  });
}

/** The first needed step of an order, from index `from` on; undefined if none is left. */
function firstFrom(from: number, repository: Repository, order: GitOrder): StepAt | undefined {
  const steps = stepsOf[order.kind];
  const at = steps.findIndex((step, place) => place >= from && !isNeedless(step, repository, order));
  const step = steps[at];
  return step && { step, at };
}

function isNeedless(step: OrderStep, { filter, treeVersion }: Repository, { kind }: GitOrder): boolean {
  // A full clone lacks no files, so it need not wait for a slot to find that out.
  if (filter === null && (step === 'files' || step === 'restore' || step === 'restoreDraft')) return true;
  // A draft does not need its repository's working tree. If there is none, the steps for it are skipped.
  const isOfDraft = kind === 'createDraft' || kind === 'mergeDraft';
  const isOfTree = step === 'restore' || step === 'fill' || step === 'save' || step === 'update';
  return isOfDraft && treeVersion === null && isOfTree;
}

/**
 * Ends the running operations of a repository whose rows are gone. Row and operation were committed together, so the
 * row cannot appear later.
 */
async function endOperationsOf(tx: Transaction, itemId: string): Promise<void> {
  const sql = 'SELECT id, kind, status FROM operations WHERE subject_id = ?';
  const operations = await select<{ id: string; kind: string; status: string }>(tx, sql, [itemId]);
  const { Operation } = operationModels(tx);
  for (const { id, kind, status } of operations) {
    if (status === 'running' && Object.hasOwn(stepsOf, kind)) await Operation.end(id, removed, tx);
  }
}

/** A step of an order, and its place among all steps of the order. */
export interface StepAt {
  step: OrderStep;
  at: number;
}

/** Records how a step ended; a repeated report changes nothing. Returns the next step of the order, if there is one. */
export async function endRepositoryStep(
  database: Database,
  { itemId, orderId, step, at, code }: RepositoryStepEnd,
): Promise<StepAt | undefined> {
  return transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    const order = await oldestOrder(tx, itemId);
    // If the repository is gone, the next look ends all its orders.
    if (repository === undefined || repository.removedAt !== null || order?.id !== orderId) return undefined;
    if (stepsOf[order.kind][order.step] !== step || (at !== undefined && at !== order.step)) return undefined;
    if (code !== undefined) {
      await fail(tx, repository, order, code);
      return undefined;
    }
    const next = firstFrom(order.step + 1, repository, order);
    if (next === undefined) await succeed(tx, repository, order);
    else await goTo(tx, order, next.at);
    return next;
  });
}

/** The current step of an order; undefined if the order is over. */
export async function stepNow(database: Database, orderId: string): Promise<StepAt | undefined> {
  const order = await findOrder(database, orderId);
  const step = order && stepsOf[order.kind][order.step];
  return step && { step, at: order.step };
}

/**
 * An automatic save has a short deadline while it waits behind other orders. Once it begins, it gets the time that it
 * needs: if it began again, it would take as long.
 */
async function giveTime(tx: Transaction, { id, createdAt, deadlineAt }: GitOrder): Promise<Date> {
  const later = new Date(createdAt.getTime() + saveMs);
  if (later <= deadlineAt) return deadlineAt;
  await execute(tx, 'UPDATE git_orders SET deadline_at = ? WHERE id = ?', [later, id]);
  return later;
}

async function goTo(tx: Transaction, { id }: GitOrder, at: number): Promise<void> {
  await execute(tx, 'UPDATE git_orders SET step = ? WHERE id = ?', [at, id]);
}

async function succeed(tx: Transaction, repository: Repository, order: GitOrder): Promise<void> {
  const settled = { progress: null, errorCode: null, errorDetail: null };
  if (isClone(order)) await changeRepository(tx, repository, { status: 'ready', ...settled });
  else await showNoProgress(tx, repository);
  await settleDraft(tx, order);
  await endOrder(tx, order, { status: 'succeeded', result: { id: order.itemId, ...order.result } });
}

async function fail(tx: Transaction, repository: Repository, order: GitOrder, code: string): Promise<void> {
  const detail = (order.failure?.code === code ? order.failure.detail : detailOf(code)).slice(0, 500);
  // The objects that arrived stay, and so does the progress that tells how many they are.
  if (isClone(order)) {
    await changeRepository(tx, repository, { status: 'failed', errorCode: code, errorDetail: detail });
  } else await showNoProgress(tx, repository);
  await settleFailedDraft(tx, order, { code, detail });
  const end = code === calledOff ? ({ status: 'cancelled' } as const) : ({ status: 'failed', code, detail } as const);
  await endOrder(tx, order, end);
}

async function showNoProgress(tx: Transaction, repository: Repository): Promise<void> {
  if (repository.progress !== null) await changeRepository(tx, repository, { progress: null });
}

/** The detail of a failure that no attempt has described. */
function detailOf(code: string): string {
  if (code === calledOff) return 'The operation was cancelled.';
  if (code === 'TIMED_OUT') return 'The operation did not finish in time.';
  return 'The operation failed; the server’s log says why.';
}
