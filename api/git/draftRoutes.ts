import { newId } from '../../base/ids.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import { maxDraftBranchBytes } from '../../integrations/git/rules/keptRefs.ts';
import { checkBranchName } from '../../integrations/git/rules/names.ts';
import { askOfDraft, askToDiscardDraft, askToDraft } from '../../models/git/drafting.ts';
import { type Draft, listDrafts } from '../../models/git/drafts.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorOf } from '../frame/auth/authorOf.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeRepository, operationWork, orderDeadlineMs } from './repositories.ts';

/** Drafts of apps: further working trees of a repository, each on its own branch. Atrium saves them by itself. */
export function draftRoutes(deps: RouteDeps) {
  const { config, database, launcher } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/drive/drafts/:appId';
  const deadlineMs = orderDeadlineMs(deps);

  router.post(`${base}/draft`, async (req, res) => {
    const { spaceId, appId: itemId } = pathOf<'createDraft'>(req);
    const { branch, computerId, environmentId } = bodyOf<'createDraft'>(req);
    checkBranchName(branch);
    if (Buffer.byteLength(branch) > maxDraftBranchBytes) {
      const detail = `A draft's branch cannot have a name that is longer than ${maxDraftBranchBytes} bytes.`;
      throw gitError('GIT_BRANCH_NAME_REFUSED', detail);
    }
    const { placed } = await authorizeRepository(deps, req, { spaceId, itemId });
    const work = async (id: string) => {
      const request = { spaceId, itemId, id, actor: actorOf(req), deadlineMs, branch, computerId, environmentId };
      const { maxDrafts } = config.git;
      const asked = await askToDraft(deps, { ...request, name: placed.item.name, maxDrafts });
      if ('ready' in asked) return { id: asked.ready.id };
      return operationWork(
        deps,
        req,
        async () => asked.operation,
        (result) => ({ id: String(result.id) }),
      )(id);
    };
    await makeOnce<'createDraft'>(deps, req, res, 'operation', work, { status: 200 });
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
    const request = { spaceId, itemId, actor: actorOf(req), deadlineMs, kind: 'mergeDraft', input } as const;
    const begin = (id: string) => askOfDraft(database, { ...request, id });
    const work = operationWork(deps, req, begin, ({ commit, branch, fastForward }) => ({
      commit: String(commit),
      branch: String(branch),
      fastForward: fastForward === true,
    }));
    await makeOnce<'mergeDraft'>(deps, req, res, 'operation', work, { status: 200 });
  });

  router.delete(`${base}/:draftId`, async (req, res) => {
    const { spaceId, appId: itemId, draftId } = pathOf<'discardDraft'>(req);
    await authorizeRepository(deps, req, { spaceId, itemId });
    const request = { spaceId, itemId, draftId, id: newId('operation'), actor: actorOf(req), deadlineMs };
    void launcher.startOperation(await askToDiscardDraft(database, request));
    res.status(204).end();
  });

  return router;
}

function presentDraft(draft: Draft): AnswerOf<'listDrafts'>['data'][number] {
  const { id, itemId: appId, branch, baseBranch, baseCommit, computerId, treePath, status, createdBy } = draft;
  const { errorCode, errorDetail, mergedCommit, mergedAt, savedAt, createdAt } = draft;
  return {
    ...{ id, appId, branch, baseBranch, baseCommit, computerId, treePath },
    status: status === 'preparing' ? 'preparing' : 'ready',
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    merged: mergedCommit === null || mergedAt === null ? null : { commit: mergedCommit, at: time(mergedAt) },
    savedAt: savedAt === null ? null : time(savedAt),
    createdBy,
    createdAt: time(createdAt),
  };
}
