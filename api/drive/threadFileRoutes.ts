import { DomainError, notFound } from '../../base/errors.ts';
import { threadContainerId } from '../../models/drive/containers.ts';
import { parsePath } from '../../models/drive/names.ts';
import { findByPath } from '../../models/drive/place.ts';
import { contentOf } from '../../models/drive/versions.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { streamingRoute } from '../frame/multipart.ts';
import { presignedUrl } from '../frame/presignedUrl.ts';
import { pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeContainer } from './authorizeDrive.ts';
import { receiveFiles } from './receive.ts';

/** The files of a thread, only for the thread's owner. They are a container of their own, deleted with their thread. */
export function threadFileRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.post(
    '/api/spaces/:spaceId/thread-files',
    streamingRoute(async (req, res) => {
      const caller = callerOf(req);
      const { spaceId } = pathOf<'uploadThreadFiles'>(req);
      const body = await receiveFiles(deps, req, {
        spaceId,
        userId: caller.userId,
        status: 201,
        fields: ['threadId'],
        async containerOf({ threadId }) {
          if (threadId === undefined) throw threadIdMissing();
          const containerId = threadContainerId(threadId);
          await authorizeContainer(deps, caller, { spaceId, containerId });
          return containerId;
        },
      });
      answer<'uploadThreadFiles'>(res, 201, body);
    }),
  );

  router.get('/api/spaces/:spaceId/thread-files/url', async (req, res) => {
    const { spaceId } = pathOf<'getThreadFileUrl'>(req);
    const { threadId, path, download = false, expiresIn = 900 } = queryOf<'getThreadFileUrl'>(req);
    const containerId = threadContainerId(threadId);
    await authorizeContainer(deps, callerOf(req), { spaceId, containerId });
    const found = await findByPath(deps.database, { spaceId, containerId, names: parsePath(path) });
    if (found === undefined) throw notFound('file');
    const content = await contentOf(deps.database, found.item);
    answer<'getThreadFileUrl'>(
      res,
      200,
      await presignedUrl(deps, { name: found.item.name, ...content }, { expiresIn, download }),
    );
  });

  return router;
}

function threadIdMissing(): DomainError {
  return new DomainError('invalid', 'INVALID_REQUEST', 'Send the field threadId before the file.', {
    errors: [{ pointer: '/threadId', detail: 'is required before the file' }],
  });
}
