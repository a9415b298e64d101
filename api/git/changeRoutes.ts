import type { Request, Response } from 'express';
import { checkBranchName } from '../../integrations/git/rules/names.ts';
import { askForChange, type ChangeInput } from '../../models/git/changes.ts';
import { askOfDraft } from '../../models/git/drafting.ts';
import type { GitChangeKind } from '../../models/git/orders.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorOf } from '../frame/auth/authorOf.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeRepository, operationWork, orderDeadlineMs } from './repositories.ts';

/** Changes of working trees, pushes and pulls. The repository's workflow makes them. */
export function changeRoutes(deps: RouteDeps) {
  const router = createRouter();
  const base = '/api/spaces/:spaceId/git/:itemId';
  const deadlineMs = orderDeadlineMs(deps);

  router.post(`${base}/branch`, async (req, res) => {
    const { name, checkout = false, from } = bodyOf<'createBranch'>(req);
    checkBranchName(name);
    await change(req, res, 'createBranch', { name, checkout, ...(from !== undefined && { from }) });
  });

  router.post(`${base}/commit`, async (req, res) => {
    const where = pathOf<'commitChanges'>(req);
    const { message, paths, draftId } = bodyOf<'commitChanges'>(req);
    const input = { message, author: await authorOf(deps, req), ...(paths !== undefined && { paths }) };
    const begin = async (id: string) => {
      await authorizeRepository(deps, req, where);
      const request = { ...where, id, actor: actorOf(req), deadlineMs };
      return draftId === undefined
        ? askForChange(deps, { ...request, kind: 'commitChanges', input })
        : askOfDraft(deps.database, { ...request, kind: 'commitDraft', input: { ...input, draftId } });
    };
    const work = operationWork(deps, req, begin, ({ commit, output }) => ({
      commit: String(commit),
      output: String(output ?? ''),
    }));
    await makeOnce<'commitChanges'>(deps, req, res, 'operation', work, { status: 200 });
  });

  router.post(`${base}/checkout`, async (req, res) => {
    const { branch, computerId } = bodyOf<'checkoutBranch'>(req) ?? {};
    const place = computerId !== undefined && { computerId };
    if (branch === undefined) return change(req, res, 'fillRepository', { ...place });
    checkBranchName(branch);
    await change(req, res, 'checkoutBranch', { branch, ...place });
  });

  router.post(`${base}/push`, async (req, res) => {
    const { branch, force = false } = bodyOf<'pushRepository'>(req) ?? {};
    await change(req, res, 'pushRepository', { force, ...checked(branch) });
  });

  router.post(`${base}/pull`, async (req, res) => {
    const { branch } = bodyOf<'pullRepository'>(req) ?? {};
    const named = checked(branch);
    await change(req, res, 'pullRepository', { author: await authorOf(deps, req), ...named });
  });

  /** Makes a change, and answers with git's words. */
  async function change(req: Request, res: Response, kind: GitChangeKind, input: ChangeInput): Promise<void> {
    const where = pathOf<'createBranch'>(req);
    const begin = async (id: string) => {
      await authorizeRepository(deps, req, where);
      return askForChange(deps, { ...where, id, kind, input, actor: actorOf(req), deadlineMs });
    };
    const work = operationWork(deps, req, begin, ({ output }) => ({ output: String(output ?? '') }));
    await makeOnce<'createBranch'>(deps, req, res, 'operation', work, { status: 200 });
  }

  return router;
}

function checked(branch: string | undefined): { branch?: string } {
  if (branch === undefined) return {};
  checkBranchName(branch);
  return { branch };
}
