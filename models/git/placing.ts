import { basename } from 'node:path/posix';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { findComputer } from '../computers/computer.ts';
import { defaultComputer, requestedComputer } from '../computers/defaultComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { numberedName } from '../drive/names.ts';
import { changeDraft, type Draft, lockDraft } from './drafts.ts';
import { changeRepository, lockRepository, type Repository } from './repository.ts';

/** A path below a computer's home that no other repository there has. */
export function freeTreePath(tx: Transaction, computerId: string, name: string): Promise<string> {
  const numbered = (number: number) => `repositories/${number === 1 ? name : numberedName(name, number)}`;
  return freePath(tx, 'git_repositories', computerId, numbered);
}

/** The same for a draft. */
export function freeDraftPath(tx: Transaction, computerId: string, wanted: string): Promise<string> {
  return freePath(tx, 'git_drafts', computerId, (number) => (number === 1 ? wanted : `${wanted}-${number}`));
}

async function freePath(
  tx: Transaction,
  table: 'git_repositories' | 'git_drafts',
  computerId: string,
  numbered: (number: number) => string,
): Promise<string> {
  const sql = `SELECT 1 FROM ${table} WHERE computer_id = ? AND tree_path = ?`;
  for (let number = 1; ; number++) {
    const path = numbered(number);
    if ((await select(tx, sql, [computerId, path])).length === 0) return path;
  }
}

/** Whether the computer of a repository or draft was deleted, with its files. */
export async function isComputerGone(
  database: Database,
  { computerId }: Pick<Repository, 'computerId'>,
): Promise<boolean> {
  const computer = await findComputer(database, computerId);
  return computer === undefined || computer.deletedAt !== null;
}

/**
 * Assigns a repository's files to the named computer, or to the space's default one. The files come there when they are
 * next needed. Throws 404.
 */
export async function moveTree(
  database: Database,
  { itemId, spaceId }: Pick<Repository, 'itemId' | 'spaceId'>,
  named: string | undefined,
): Promise<Repository> {
  const { id: computerId } = await requestedComputer(database, spaceId, named);
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
 * Assigns a draft whose computer was deleted to the space's default one. The next save or other order brings its saved
 * contents there. Throws 404.
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
