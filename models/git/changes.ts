import { notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { requireCredits } from '../billing/usage.ts';
import { getComputer } from '../computers/computer.ts';
import { type Database, transaction } from '../database/database.ts';
import { driveModels } from '../drive/models.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { beginOrder, type GitChangeKind, isRemote, requireRoomForRemote } from './orders.ts';
import { changeRepository, lockRepository, requireReady } from './repository.ts';

/** What a change is made with, as its order keeps it. */
export interface ChangeInput {
  /** Of the branch that is made. */
  name?: string;
  from?: string;
  checkout?: boolean;
  /** Of the branch that is checked out, pushed or pulled. */
  branch?: string;
  force?: boolean;
  message?: string;
  paths?: string[];
  /** Where a check-out brings the files. */
  computerId?: string;
  /** Whose commits these are. */
  author?: { name: string; email: string };
}

export interface ChangeRequest {
  spaceId: string;
  itemId: string;
  /** The operation's. The same one again is the same operation. */
  id?: string;
  kind: GitChangeKind;
  input: ChangeInput;
  actor: Actor & { userId: string };
  deadlineMs: number;
}

const actions: Readonly<Record<GitChangeKind, AuditAction>> = {
  fillRepository: 'repository.checked-out',
  createBranch: 'repository.branch-created',
  commitChanges: 'repository.committed',
  checkoutBranch: 'repository.checked-out',
  pushRepository: 'repository.pushed',
  pullRepository: 'repository.pulled',
};

/**
 * Begins a change of a repository that has been cloned; its workflow makes it when its turn comes. Throws 402 where a
 * computer could not be woken either, 404 for the repository or the computer, 409 `GIT_REPOSITORY_NOT_READY`,
 * `GIT_REPOSITORY_BUSY` or `GIT_TOO_MANY_EXCHANGES`.
 */
export async function askForChange(
  { database, config }: { database: Database; config: Pick<Config, 'billing' | 'git'> },
  request: ChangeRequest,
): Promise<Operation> {
  const { spaceId, itemId, kind, actor, id, input, deadlineMs } = request;
  if (input.computerId !== undefined) await getComputer(database, spaceId, input.computerId);
  const known = id === undefined ? null : await operationModels(database).Operation.findByPk(id);
  if (known !== null) return known;
  // It may be made beside a computer that sleeps, with what others pay for.
  await requireCredits(database, config.billing, spaceId);
  return transaction(database, async (tx) => {
    // Before the repository's, as whoever clones takes them.
    await driveModels(tx).Drive.lock(spaceId, tx);
    const repository = await lockRepository(tx, itemId);
    if (repository === undefined || repository.spaceId !== spaceId || repository.removedAt !== null) {
      throw notFound('repository');
    }
    requireReady(repository);
    if (isRemote({ kind }, repository)) {
      await requireRoomForRemote(tx, { spaceId, itemId, kind }, config.git.maxClones);
    }
    const order = { kind, input: { ...input }, actor, deadlineMs, ...(id !== undefined && { id }) };
    const operation = await beginOrder(tx, repository, order);
    await appendAudit(tx, spaceId, actor, actions[kind], itemId);
    return operation;
  });
}

/** The working tree is there, of this version. */
export async function recordTree(database: Database, itemId: string, treeVersion: number): Promise<void> {
  await transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    if (repository !== undefined) await changeRepository(tx, repository, { treeVersion });
  });
}
