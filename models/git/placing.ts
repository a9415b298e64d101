import { basename } from 'node:path/posix';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { findComputer, getComputer } from '../computers/computer.ts';
import { defaultComputer } from '../computers/defaultComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { numberedName } from '../drive/names.ts';
import { changeDraft, type Draft, lockDraft } from './drafts.ts';
import { changeRepository, lockRepository, type Repository } from './repository.ts';

/** Below a computer's home, where no other repository of the computer is. */
export async function freeTreePath(tx: Transaction, computerId: string, name: string): Promise<string> {
  const sql = 'SELECT 1 FROM git_repositories WHERE computer_id = ? AND tree_path = ?';
  for (let number = 1; ; number++) {
    const path = `repositories/${number === 1 ? name : numberedName(name, number)}`;
    if ((await select(tx, sql, [computerId, path])).length === 0) return path;
  }
}

/** The same for a draft. */
export async function freeDraftPath(tx: Transaction, computerId: string, wanted: string): Promise<string> {
  const sql = 'SELECT 1 FROM git_drafts WHERE computer_id = ? AND tree_path = ?';
  for (let number = 1; ; number++) {
    const path = number === 1 ? wanted : `${wanted}-${number}`;
    if ((await select(tx, sql, [computerId, path])).length === 0) return path;
  }
}

/** Whether the computer of a repository or draft was deleted, with the files that were on it. */
export async function isComputerGone(
  database: Database,
  { computerId }: Pick<Repository, 'computerId'>,
): Promise<boolean> {
  const computer = await findComputer(database, computerId);
  return computer === undefined || computer.deletedAt !== null;
}

/**
 * Gives a repository's files a place on another computer, the space's default one unless one is named. They come there
 * when they are next needed. Throws 404.
 */
export async function moveTree(
  database: Database,
  { itemId, spaceId }: Pick<Repository, 'itemId' | 'spaceId'>,
  named: string | undefined,
): Promise<Repository> {
  const { id: computerId } =
    named === undefined ? await defaultComputer(database, spaceId) : await getComputer(database, spaceId, named);
  return transaction(
    database,
    async (tx) => {
      const repository = await lockRepository(tx, itemId);
      if (repository === undefined || repository.removedAt !== null) throw notFound('repository');
      if (repository.computerId === computerId) return repository;
      const treePath = await freeTreePath(tx, computerId, basename(repository.treePath));
      await changeRepository(tx, repository, { computerId, treePath, treeVersion: null });
      return repository;
    },
    { retryDuplicates: true },
  );
}

/**
 * Gives a draft whose computer was deleted a place on the space's default one. What was saved of it comes there when it
 * is next saved, or something is done with it. Throws 404.
 */
export async function moveDraft(
  database: Database,
  { id, itemId, spaceId, computerId: lost }: Pick<Draft, 'id' | 'itemId' | 'spaceId' | 'computerId'>,
): Promise<Draft> {
  const { id: computerId } = await defaultComputer(database, spaceId);
  return transaction(
    database,
    async (tx) => {
      const repository = await lockRepository(tx, itemId);
      if (repository === undefined || repository.removedAt !== null) throw notFound('repository');
      const draft = await lockDraft(tx, itemId, id);
      if (draft.computerId !== lost) return draft;
      const place = { computerId, treePath: await freeDraftPath(tx, computerId, draft.treePath), isFilled: false };
      await changeDraft(tx, id, place);
      return { ...draft, ...place };
    },
    { retryDuplicates: true },
  );
}
