import type { Request } from 'express';
import { checkBranchName } from '../../integrations/git/rules/names.ts';
import { askForChange, type ChangeInput } from '../../models/git/changes.ts';
import { askOfDraft, type DraftInput } from '../../models/git/drafting.ts';
import type { GitChangeKind } from '../../models/git/orders.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorOf } from '../frame/auth/authorOf.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeRepository } from './repositories.ts';

/** Other orders of the repository may come before it. */
const waitMs = 5 * 60_000;

/** What changes working trees, and what is sent to and fetched from remotes. The repository's workflow does it. */
export function changeRoutes(deps: RouteDeps) {
  const { config, database } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/git/:itemId';
  const deadlineMs = config.git.timeoutMs + waitMs;

  router.post(`${base}/branch`, async (req, res) => {
    const where = pathOf<'createBranch'>(req);
    const { name, checkout = false, from } = bodyOf<'createBranch'>(req);
    checkBranchName(name);
    const input = { name, checkout, ...(from !== undefined && { from }) };
    await makeOnce<'createBranch'>(
      deps,
      req,
      res,
      'operation',
      async (id) => outputOf(await change(req, where, { id, kind: 'createBranch', input })),
      { status: 200 },
    );
  });

  router.post(`${base}/commit`, async (req, res) => {
    const where = pathOf<'commitChanges'>(req);
    const { message, paths, draftId } = bodyOf<'commitChanges'>(req);
    const input = { message, author: await authorOf(deps, req), ...(paths !== undefined && { paths }) };
    const order =
      draftId === undefined
        ? ({ kind: 'commitChanges', input } as const)
        : ({ kind: 'commitDraft', input: { ...input, draftId } } as const);
    await makeOnce<'commitChanges'>(
      deps,
      req,
      res,
      'operation',
      async (id) => {
        const result = await change(req, where, { id, ...order });
        return result instanceof GoesOn
          ? result
          : { commit: String(result.commit), output: String(result.output ?? '') };
      },
      { status: 200 },
    );
  });

  router.post(`${base}/checkout`, async (req, res) => {
    const where = pathOf<'checkoutBranch'>(req);
    const { branch, computerId } = bodyOf<'checkoutBranch'>(req) ?? {};
    if (branch !== undefined) checkBranchName(branch);
    const place = computerId !== undefined && { computerId };
    const order =
      branch === undefined
        ? ({ kind: 'fillRepository', input: { ...place } } as const)
        : ({ kind: 'checkoutBranch', input: { branch, ...place } } as const);
    await makeOnce<'checkoutBranch'>(
      deps,
      req,
      res,
      'operation',
      async (id) => outputOf(await change(req, where, { id, ...order })),
      { status: 200 },
    );
  });

  router.post(`${base}/push`, async (req, res) => {
    const where = pathOf<'pushRepository'>(req);
    const { branch, force = false } = bodyOf<'pushRepository'>(req) ?? {};
    if (branch !== undefined) checkBranchName(branch);
    const input = { force, ...(branch !== undefined && { branch }) };
    await makeOnce<'pushRepository'>(
      deps,
      req,
      res,
      'operation',
      async (id) => outputOf(await change(req, where, { id, kind: 'pushRepository', input })),
      { status: 200 },
    );
  });

  router.post(`${base}/pull`, async (req, res) => {
    const where = pathOf<'pullRepository'>(req);
    const { branch } = bodyOf<'pullRepository'>(req) ?? {};
    if (branch !== undefined) checkBranchName(branch);
    const input = { author: await authorOf(deps, req), ...(branch !== undefined && { branch }) };
    await makeOnce<'pullRepository'>(
      deps,
      req,
      res,
      'operation',
      async (id) => outputOf(await change(req, where, { id, kind: 'pullRepository', input })),
      { status: 200 },
    );
  });

  /** What its operation has brought, or that it goes on. Throws why it has failed. */
  async function change(
    req: Request,
    where: { spaceId: string; itemId: string },
    order: { id: string } & ({ kind: GitChangeKind; input: ChangeInput } | { kind: 'commitDraft'; input: DraftInput }),
  ): Promise<Record<string, unknown> | GoesOn> {
    await authorizeRepository(deps, req, where);
    const request = { ...where, actor: actorOf(req), deadlineMs };
    const operation =
      order.kind === 'commitDraft'
        ? await askOfDraft(database, { ...request, ...order })
        : await askForChange(deps, { ...request, ...order });
    const outcome = await outcomeOf(deps, req, operation);
    return outcome instanceof GoesOn ? outcome : (outcome.result ?? {});
  }

  return router;
}

function outputOf(result: Record<string, unknown> | GoesOn): { output: string } | GoesOn {
  return result instanceof GoesOn ? result : { output: String(result.output ?? '') };
}
