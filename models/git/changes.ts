import type { Config } from '../../config/index.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { requireCredits } from '../billing/usage.ts';
import { getComputer } from '../computers/computer.ts';
import { type Database, transaction } from '../database/database.ts';
import { driveModels } from '../drive/models.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { beginOrder, type GitChangeKind, isRemote, requireRoomForRemote } from './orders.ts';
import { changeRepository, lockRepository, lockRepositoryOf, requireReady } from './repository.ts';

/** The input of a change. It is stored with the order. */
export interface ChangeInput {
  /** The name of the new branch. */
  name?: string;
  from?: string;
  checkout?: boolean;
  /** The branch to check out, push or pull. */
  branch?: string;
  force?: boolean;
  message?: string;
  paths?: string[];
  /** The computer to which a check-out brings the files. */
  computerId?: string;
  /** The author of the commits. */
  author?: { name: string; email: string };
}

export interface ChangeRequest {
  spaceId: string;
  itemId: string;
  /** The operation's id. A repeated id means the same operation. */
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
 * Orders a change of a cloned repository. The repository's workflow makes it after earlier orders. Throws 402 if the
 * space has too few credits to wake a computer, 404 for the repository or the computer, 409 `GIT_REPOSITORY_NOT_READY`,
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
  // Checked here, because work beside a sleeping computer is not charged later.
  await requireCredits(database, config.billing, spaceId);
  return transaction(database, async (tx) => {
    // Clones take the locks in this order too.
    await driveModels(tx).Drive.lock(spaceId, tx);
    const repository = await lockRepositoryOf(tx, spaceId, itemId);
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

/** Records the version of the working tree. */
export async function recordTree(database: Database, itemId: string, treeVersion: number): Promise<void> {
  await transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    if (repository !== undefined) await changeRepository(tx, repository, { treeVersion });
  });
}
