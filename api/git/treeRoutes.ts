import type { Request, Response } from 'express';
import type { TreeRef } from '../../integrations/git/types.ts';
import { DomainError } from '../../models/errors.ts';
import { askForChange } from '../../models/git/changes.ts';
import { requireReady } from '../../models/git/repository.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { failureOf, runOperation } from '../frame/operationAnswer.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeRepository } from './authorizeRepository.ts';

const maxBranches = 20_000;
/** Other orders of the repository may come before it. */
const fillMs = 30 * 60_000;

/** What there is in working trees. */
export function treeRoutes(deps: RouteDeps) {
  const { database, gitTrees } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/git/:itemId';

  router.get(`${base}/status`, async (req, res) => {
    const where = pathOf<'getRepositoryStatus'>(req);
    const status = await look(req, res, where, (tree, signal) => gitTrees.status(tree, signal));
    answer<'getRepositoryStatus'>(res, 200, status);
  });

  router.get(`${base}/log`, async (req, res) => {
    const where = pathOf<'listRepositoryCommits'>(req);
    const { from, path } = queryOf<'listRepositoryCommits'>(req);
    const { limit, cursor } = pageOf(req);
    const after = cursor === undefined ? undefined : requireCursor(cursor);
    const { commits, next } = await look(req, res, where, (tree, signal) =>
      gitTrees.log(tree, { from, after, limit, path }, signal),
    );
    answer<'listRepositoryCommits'>(res, 200, { data: commits, nextCursor: next });
  });

  router.get(`${base}/branches`, async (req, res) => {
    const where = pathOf<'listRepositoryBranches'>(req);
    const branches = await look(req, res, where, (tree, signal) => gitTrees.branches(tree, signal));
    const truncated = branches.length > maxBranches;
    answer<'listRepositoryBranches'>(res, 200, { data: branches.slice(0, maxBranches), truncated });
  });

  router.get(`${base}/diff`, async (req, res) => {
    const where = pathOf<'getRepositoryDiff'>(req);
    const { from, to, staged, path } = queryOf<'getRepositoryDiff'>(req);
    const range = { from, to, staged, ...(path !== undefined && { paths: [path] }) };
    const diff = await look(req, res, where, (tree, signal) => gitTrees.diff(tree, range, signal));
    answer<'getRepositoryDiff'>(res, 200, diff);
  });

  /** Looks at a working tree; where there is none yet, it is made first, by the repository's workflow. */
  async function look<T>(
    req: Request,
    res: Response,
    where: { spaceId: string; itemId: string },
    at: (tree: TreeRef, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const repository = await authorizeRepository(deps, req, where);
    requireReady(repository);
    const { spaceId, itemId, computerId, treePath: path } = repository;
    const tree: TreeRef = { spaceId, itemId, computerId, path };
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    try {
      return await at(tree, gone.signal);
    } catch (error) {
      if (!isWithoutTree(error)) throw error;
      await fill(req, where);
      return at(tree, gone.signal);
    }
  }

  async function fill(req: Request, where: { spaceId: string; itemId: string }): Promise<void> {
    const order = { kind: 'fillRepository', input: {}, actor: actorOf(req), deadlineMs: fillMs } as const;
    const ended = await runOperation(deps, req, await askForChange(database, { ...where, ...order }));
    if (ended === undefined) {
      const detail = 'The repository’s files are being brought to its computer. Try again soon.';
      throw new DomainError('unavailable', 'GIT_TREE_FILLS', detail, { retryAfterSeconds: 5 });
    }
    if (ended.status !== 'succeeded') throw failureOf(ended);
  }

  return router;
}

/** Its files were never brought to its computer, or that has a new home, or was never used. */
function isWithoutTree(error: unknown): boolean {
  return error instanceof DomainError && (error.code === 'GIT_TREE_MISSING' || error.code === 'COMPUTER_NOT_RUNNING');
}

/** As `GitTrees.log` gives it: a commit, and how many after it are passed over. */
function requireCursor(cursor: string): string {
  if (/^[0-9a-f]{40}\.\d{1,9}$/.test(cursor)) return cursor;
  throw new DomainError('invalid', 'INVALID_CURSOR', 'The cursor is not one that a page gave.');
}
