import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import { describeRefusal } from '../../integrations/git/rules/describeFailure.ts';
import { checkBranchName } from '../../integrations/git/rules/names.ts';
import { parseRemoteUrl, type RemoteUrl } from '../../integrations/git/rules/remoteUrl.ts';
import { checkName } from '../../models/drive/names.ts';
import { askToClone, askToRetryClone, changeCredential } from '../../models/git/cloning.ts';
import { covers } from '../../models/git/credentials.ts';
import type { RepositoryFilter } from '../../models/git/repository.ts';
import type { Operation } from '../../models/operations/operation.ts';
import { authorizeItem } from '../drive/authorizeDrive.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeRepository, orderDeadlineMs, presentRepository } from './repositories.ts';

/** Repositories: clones, retries of clones, and credentials. */
export function cloneRoutes(deps: RouteDeps) {
  const { config, database, launcher } = deps;
  const router = createRouter();
  const limits = { deadlineMs: orderDeadlineMs(deps), maxClones: config.git.maxClones };

  router.post('/api/spaces/:spaceId/git/clone', async (req, res) => {
    const { spaceId } = pathOf<'cloneRepository'>(req);
    const { name, branch = null, depth = null, filter = null, ...body } = bodyOf<'cloneRepository'>(req);
    const { parentId, computerId, credentialId = null } = body;
    const remote = parseRemoteUrl(body.url);
    requireReachable(remote);
    if (branch !== null) checkBranchName(branch);
    if (parentId !== undefined) await authorizeItem(deps, callerOf(req), { spaceId, itemId: parentId });
    if (credentialId !== null) await requireFitting(spaceId, credentialId, remote);
    await makeOnce<'cloneRepository'>(deps, req, res, 'driveItem', async (id) => {
      const operation = await askToClone(database, {
        ...{ spaceId, id, url: remote.url, branch, depth, credentialId, parentId, computerId, ...limits },
        // The contract's pattern allows nothing else.
        filter: filter as RepositoryFilter | null,
        name: name === undefined ? { text: nameOf(remote), isPreferred: true } : { text: name, isPreferred: false },
        actor: actorOf(req),
      });
      begin(operation);
      return show(req, { spaceId, itemId: id });
    });
  });

  router.get('/api/spaces/:spaceId/git/:itemId', async (req, res) => {
    answer<'getRepository'>(res, 200, await show(req, pathOf<'getRepository'>(req)));
  });

  router.patch('/api/spaces/:spaceId/git/:itemId', async (req, res) => {
    const where = pathOf<'updateRepository'>(req);
    const { credentialId } = bodyOf<'updateRepository'>(req);
    const { url } = await authorizeRepository(deps, req, where);
    if (credentialId !== null) await requireFitting(where.spaceId, credentialId, parseRemoteUrl(url));
    await changeCredential(database, { ...where, credentialId, actor: actorOf(req) });
    answer<'updateRepository'>(res, 200, await show(req, where));
  });

  router.post('/api/spaces/:spaceId/drive/retry-clone/:driveItemId', async (req, res) => {
    const { spaceId, driveItemId: itemId } = pathOf<'retryClone'>(req);
    const { credentialId } = bodyOf<'retryClone'>(req) ?? {};
    const { url } = await authorizeRepository(deps, req, { spaceId, itemId });
    if (credentialId != null) await requireFitting(spaceId, credentialId, parseRemoteUrl(url));
    begin(await askToRetryClone(database, { spaceId, itemId, credentialId, actor: actorOf(req), ...limits }));
    answer<'retryClone'>(res, 200, { id: itemId });
  });

  async function show(req: Request, where: { spaceId: string; itemId: string }) {
    return presentRepository(await authorizeRepository(deps, req, where));
  }

  function begin(operation: Operation | undefined): void {
    if (operation?.status === 'running') void launcher.startOperation(operation);
  }

  /** Refuses a URL whose address is already known to be unreachable. Host names are resolved only by the clone. */
  function requireReachable({ host, port }: RemoteUrl): void {
    const refusal = deps.egressGuard.refusalAtOnce({ host, port });
    if (refusal === undefined) return;
    throw new DomainError('unprocessable', 'GIT_REMOTE_FORBIDDEN', describeRefusal(refusal), {
      errors: [{ pointer: '/url', detail: refusal }],
    });
  }

  /** Refuses a credential that is for another server or path. */
  async function requireFitting(spaceId: string, credentialId: string, remote: RemoteUrl): Promise<void> {
    if (covers(await deps.gitCredentials.get(spaceId, credentialId), remote)) return;
    throw new DomainError('unprocessable', 'GIT_CREDENTIAL_ELSEWHERE', 'The credential is not for this repository.', {
      errors: [{ pointer: '/credentialId', detail: 'is for another server or another path' }],
    });
  }

  return router;
}

/** The default name of a repository: the end of its URL. */
function nameOf({ path }: RemoteUrl): string {
  try {
    const name = decodeURIComponent(path.split('/').at(-1) ?? '').replace(/\.git$/, '');
    checkName(name);
    return name;
  } catch {
    return 'repository';
  }
}
