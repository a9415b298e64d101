import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import { draftMissing, treeMissing } from '../../integrations/git/rules/failures.ts';
import type { TreeRef } from '../../integrations/git/treeTypes.ts';
import { getDraft } from '../../models/git/drafts.ts';
import { requireReady } from '../../models/git/repository.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeRepository } from './repositories.ts';

const maxBranches = 20_000;

/** Reads of working trees: those of repositories, and of their drafts. */
export function treeRoutes(deps: RouteDeps) {
  const { gitTrees } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/git/:itemId';

  router.get(`${base}/status`, async (req, res) => {
    const where = { ...pathOf<'getRepositoryStatus'>(req), ...queryOf<'getRepositoryStatus'>(req) };
    const status = await look(req, res, where, (tree, signal) => gitTrees.status(tree, signal));
    answer<'getRepositoryStatus'>(res, 200, status);
  });

  router.get(`${base}/log`, async (req, res) => {
    const { from, path, draftId } = queryOf<'listRepositoryCommits'>(req);
    const where = { ...pathOf<'listRepositoryCommits'>(req), draftId };
    const { limit, cursor } = pageOf(req);
    const after = cursor === undefined ? undefined : requireCursor(cursor);
    const { commits, next } = await look(req, res, where, (tree, signal) =>
      gitTrees.log(tree, { from, after, limit, path }, signal),
    );
    answer<'listRepositoryCommits'>(res, 200, { data: commits, nextCursor: next });
  });

  router.get(`${base}/branches`, async (req, res) => {
    const where = { ...pathOf<'listRepositoryBranches'>(req), ...queryOf<'listRepositoryBranches'>(req) };
    const branches = await look(req, res, where, (tree, signal) => gitTrees.branches(tree, signal));
    const truncated = branches.length > maxBranches;
    answer<'listRepositoryBranches'>(res, 200, { data: branches.slice(0, maxBranches), truncated });
  });

  router.get(`${base}/diff`, async (req, res) => {
    const { from, to, staged, path, draftId } = queryOf<'getRepositoryDiff'>(req);
    const where = { ...pathOf<'getRepositoryDiff'>(req), draftId };
    const range = { from, to, staged, ...(path !== undefined && { paths: [path] }) };
    const diff = await look(req, res, where, (tree, signal) => gitTrees.diff(tree, range, signal));
    answer<'getRepositoryDiff'>(res, 200, diff);
  });

  /** Reads a working tree as it is. A read wakes no computer, and is not charged. */
  async function look<T>(
    req: Request,
    res: Response,
    where: { spaceId: string; itemId: string; draftId?: string | undefined },
    at: (tree: TreeRef, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const repository = await authorizeRepository(deps, req, where);
    requireReady(repository);
    const { draftId } = where;
    const draft = draftId === undefined ? undefined : await getDraft(deps.database, where.itemId, draftId);
    const { computerId, treePath: path } = draft ?? repository;
    const tree = { spaceId: where.spaceId, itemId: draft?.id ?? where.itemId, computerId, path };
    try {
      return await at(tree, goneOf(res));
    } catch (error) {
      const code = error instanceof DomainError ? error.code : undefined;
      if (draft !== undefined && code === 'GIT_TREE_MISSING') throw draftMissing();
      // The computer was never used.
      if (code === 'COMPUTER_NOT_RUNNING') throw treeMissing();
      throw error;
    }
  }

  return router;
}

/** A cursor of `GitTrees.log`: the first page's commit, and how many commits to skip. */
function requireCursor(cursor: string): string {
  if (/^[0-9a-f]{40}\.\d{1,9}$/.test(cursor)) return cursor;
  throw new DomainError('invalid', 'INVALID_CURSOR', 'The cursor is not valid. Use the `next` of the page before.');
}
