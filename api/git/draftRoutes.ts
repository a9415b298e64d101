import type { Request } from 'express';
import { newId } from '../../base/ids.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import { maxDraftBranchBytes } from '../../integrations/git/rules/keptRefs.ts';
import { checkBranchName } from '../../integrations/git/rules/names.ts';
import { askOfDraft, askToDiscardDraft, askToDraft } from '../../models/git/drafting.ts';
import { type Draft, listDrafts } from '../../models/git/drafts.ts';
import type { Operation } from '../../models/operations/operation.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorOf } from '../frame/auth/authorOf.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeRepository } from './repositories.ts';

/** Other orders of the repository may come before it. */
const waitMs = 5 * 60_000;

/** Drafts of apps: further working trees of a repository, each on a branch of its own, that are saved by themselves. */
export function draftRoutes(deps: RouteDeps) {
  const { config, database, launcher } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/drive/drafts/:appId';
  const deadlineMs = config.git.timeoutMs + waitMs;

  router.post(`${base}/draft`, async (req, res) => {
    const { spaceId, appId: itemId } = pathOf<'createDraft'>(req);
    const { branch, computerId } = bodyOf<'createDraft'>(req);
    checkBranchName(branch);
    if (Buffer.byteLength(branch) > maxDraftBranchBytes) {
      const detail = `A draft's branch cannot have a name that is longer than ${maxDraftBranchBytes} bytes.`;
      throw gitError('GIT_BRANCH_NAME_REFUSED', detail);
    }
    const { placed } = await authorizeRepository(deps, req, { spaceId, itemId });
    await makeOnce<'createDraft'>(
      deps,
      req,
      res,
      'operation',
      async (id) => {
        const request = { spaceId, itemId, id, actor: actorOf(req), deadlineMs, branch, computerId };
        const { maxDrafts } = config.git;
        const asked = await askToDraft(database, { ...request, name: placed.item.name, maxDrafts });
        if ('ready' in asked) return { id: asked.ready.id };
        const result = await resultOf(req, asked.operation);
        return result instanceof GoesOn ? result : { id: String(result.id) };
      },
      { status: 200 },
    );
  });

  router.get(base, async (req, res) => {
    const { spaceId, appId: itemId } = pathOf<'listDrafts'>(req);
    await authorizeRepository(deps, req, { spaceId, itemId });
    const { data, nextCursor } = await listDrafts(database, itemId, pageOf(req));
    answer<'listDrafts'>(res, 200, { data: data.map(presentDraft), nextCursor });
  });

  router.post(`${base}/merge`, async (req, res) => {
    const { spaceId, appId: itemId } = pathOf<'mergeDraft'>(req);
    const { draftId, message } = bodyOf<'mergeDraft'>(req);
    await authorizeRepository(deps, req, { spaceId, itemId });
    const author = await authorOf(deps, req);
    const input = { draftId, author, ...(message !== undefined && { message }) };
    await makeOnce<'mergeDraft'>(
      deps,
      req,
      res,
      'operation',
      async (id) => {
        const request = { spaceId, itemId, id, actor: actorOf(req), deadlineMs, kind: 'mergeDraft', input } as const;
        const result = await resultOf(req, await askOfDraft(database, request));
        if (result instanceof GoesOn) return result;
        const { commit, branch, fastForward } = result;
        return { commit: String(commit), branch: String(branch), fastForward: fastForward === true };
      },
      { status: 200 },
    );
  });

  router.delete(`${base}/:draftId`, async (req, res) => {
    const { spaceId, appId: itemId, draftId } = pathOf<'discardDraft'>(req);
    await authorizeRepository(deps, req, { spaceId, itemId });
    const request = { spaceId, itemId, draftId, id: newId('operation'), actor: actorOf(req), deadlineMs };
    void launcher.startOperation(await askToDiscardDraft(database, request));
    res.status(204).end();
  });

  /** What an operation has brought, or that it goes on. Throws why it has failed. */
  async function resultOf(req: Request, operation: Operation): Promise<Record<string, unknown> | GoesOn> {
    const outcome = await outcomeOf(deps, req, operation);
    return outcome instanceof GoesOn ? outcome : (outcome.result ?? {});
  }

  return router;
}

type DraftBody = AnswerOf<'listDrafts'>['data'][number];

function presentDraft(draft: Draft): DraftBody {
  const { id, itemId: appId, branch, baseBranch, baseCommit, computerId, treePath, status, createdBy } = draft;
  const { errorCode, errorDetail, mergedCommit, mergedAt, savedAt, createdAt } = draft;
  return {
    id,
    appId,
    branch,
    baseBranch,
    baseCommit,
    computerId,
    treePath,
    status: status === 'preparing' ? 'preparing' : 'ready',
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    merged: mergedCommit === null || mergedAt === null ? null : { commit: mergedCommit, at: time(mergedAt) },
    savedAt: savedAt === null ? null : time(savedAt),
    createdBy,
    createdAt: time(createdAt),
  };
}
