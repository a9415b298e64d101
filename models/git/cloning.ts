import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { requestedComputer } from '../computers/defaultComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert, select } from '../database/sql.ts';
import { driveContainerId } from '../drive/containers.ts';
import { driveModels } from '../drive/models.ts';
import { addItem, chooseName, makeFolders, openFolder } from '../drive/tree.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { beginOrder, ordersOf, requireRoomForRemote } from './orders.ts';
import { freeTreePath } from './placing.ts';
import {
  changeRepository,
  lockRepository,
  lockRepositoryOf,
  type Repository,
  type RepositoryFilter,
} from './repository.ts';

export interface CloneRequest {
  spaceId: string;
  /** The item's id. A repeated id means the same repository. */
  id: string;
  actor: Actor & { userId: string };
  /** Without user and password. */
  url: string;
  credentialId: string | null;
  branch: string | null;
  depth: number | null;
  filter: RepositoryFilter | null;
  parentId: string | undefined;
  /** The item's name. A preferred name is changed if it is taken. */
  name: { text: string; isPreferred: boolean };
  computerId: string | undefined;
  deadlineMs: number;
  /** How many repositories of the space may wait for git servers. */
  maxClones: number;
}

/**
 * Puts a repository into the drive, and begins its clone. Throws 404 for the folder, the credential or
 * the computer, 409 `NAME_TAKEN` or `GIT_TOO_MANY_CLONES`.
 */
export async function askToClone(database: Database, request: CloneRequest): Promise<Operation | undefined> {
  const { spaceId, id, actor, credentialId, computerId } = request;
  const { userId } = actor;
  const computer = await requestedComputer(database, spaceId, computerId);
  return transaction(
    database,
    async (tx) => {
      const { Drive, DriveItem } = driveModels(tx);
      const drive = await Drive.lock(spaceId, tx);
      const known = await lockRepository(tx, id);
      if (known !== undefined) return findOperation(tx, known.operationId);
      await requireRoomForRemote(tx, { spaceId, itemId: id, kind: 'cloneRepository' }, request.maxClones);
      if (credentialId !== null) await requireCredential(tx, spaceId, credentialId);
      const folder =
        request.parentId === undefined
          ? await makeFolders(drive, { spaceId, containerId: driveContainerId, userId }, [], tx)
          : await openFolder(spaceId, request.parentId, tx);
      const { text, isPreferred } = request.name;
      const taken = await DriveItem.childOf(folder.itself.id, text, tx);
      const name = await chooseName(folder, text, taken, isPreferred ? 'rename' : 'error', tx);
      await addItem(drive, folder, { spaceId, id, kind: 'repository', name, userId }, tx);
      const order = { kind: 'cloneRepository', input: {}, actor, deadlineMs: request.deadlineMs } as const;
      const operation = await beginOrder(tx, { itemId: id, spaceId }, order);
      const now = new Date();
      const { url, branch, depth, filter } = request;
      const place = { computerId: computer.id, treePath: await freeTreePath(tx, computer.id, name) };
      const row = {
        ...{ itemId: id, spaceId, ...place, url, credentialId, branch, depth, filter, operationId: operation.id },
        ...{ status: 'cloning', statusAt: now, version: 0, createdBy: userId, createdAt: now },
      };
      await insert(tx, 'git_repositories', row);
      await appendAudit(tx, spaceId, actor, 'repository.cloned', id);
      return operation;
    },
    { retryDuplicates: true },
  );
}

async function findOperation(tx: Transaction, id: string): Promise<Operation | undefined> {
  return (await operationModels(tx).Operation.findByPk(id, { transaction: tx })) ?? undefined;
}

async function requireCredential(tx: Transaction, spaceId: string, id: string): Promise<void> {
  const sql = 'SELECT id FROM git_credentials WHERE id = ? AND space_id = ?';
  if ((await select(tx, sql, [id, spaceId])).length === 0) throw notFound('credential');
}

/**
 * Retries a failed clone, which continues from the objects that arrived. Throws 404, 409 `GIT_CLONE_UNDER_WAY`,
 * `GIT_CLONE_SUCCEEDED` or `GIT_TOO_MANY_CLONES`.
 */
export async function askToRetryClone(
  database: Database,
  {
    spaceId,
    itemId,
    actor,
    credentialId,
    deadlineMs,
    maxClones,
  }: Pick<CloneRequest, 'spaceId' | 'actor' | 'deadlineMs' | 'maxClones'> & {
    itemId: string;
    credentialId: string | null | undefined;
  },
): Promise<Operation> {
  return transaction(database, async (tx) => {
    await driveModels(tx).Drive.lock(spaceId, tx);
    const repository = await lockRepositoryOf(tx, spaceId, itemId);
    await requireFailed(tx, repository);
    await requireRoomForRemote(tx, { spaceId, itemId, kind: 'retryClone' }, maxClones);
    if (credentialId !== undefined) await giveCredential(tx, repository, credentialId, actor);
    const order = { kind: 'retryClone', input: {}, actor, deadlineMs } as const;
    const operation = await beginOrder(tx, repository, order);
    const begun = { status: 'cloning', errorCode: null, errorDetail: null, operationId: operation.id } as const;
    await changeRepository(tx, repository, begun);
    await appendAudit(tx, spaceId, actor, 'repository.clone-retried', itemId);
    return operation;
  });
}

/** Changes the credential for the next clone, pull or push. Throws 404 for the repository or the credential. */
export async function changeCredential(
  database: Database,
  {
    spaceId,
    itemId,
    credentialId,
    actor,
  }: { spaceId: string; itemId: string; credentialId: string | null; actor: Actor },
): Promise<void> {
  await transaction(database, async (tx) => {
    await giveCredential(tx, await lockRepositoryOf(tx, spaceId, itemId), credentialId, actor);
  });
}

async function giveCredential(
  tx: Transaction,
  repository: Repository,
  credentialId: string | null,
  actor: Actor,
): Promise<void> {
  const { spaceId, itemId } = repository;
  if (credentialId !== null) await requireCredential(tx, spaceId, credentialId);
  if (credentialId === repository.credentialId) return;
  await changeRepository(tx, repository, { credentialId });
  await appendAudit(tx, spaceId, actor, 'repository.credential-changed', itemId);
}

async function requireFailed(tx: Transaction, { itemId, status }: Repository): Promise<void> {
  if (status === 'ready') {
    throw new DomainError(
      'conflict',
      'GIT_CLONE_SUCCEEDED',
      'The repository has been cloned. Pull to bring it up to date.',
    );
  }
  if (status === 'cloning' || (await ordersOf(tx, itemId)).length > 0) {
    throw new DomainError('conflict', 'GIT_CLONE_UNDER_WAY', 'The repository is being cloned.', {
      retryAfterSeconds: 5,
    });
  }
}

/** Records the default branch and the facts of a clone. The repository becomes `ready` when the order ends. */
export async function recordClone(
  database: Database,
  itemId: string,
  brought: Pick<Repository, 'defaultBranch' | 'facts'>,
): Promise<void> {
  await transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    if (repository !== undefined) await changeRepository(tx, repository, brought);
  });
}
