import { driveContainerId } from '../../models/drive/containers.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { streamingRoute } from '../frame/multipart.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeContainer } from './authorizeDrive.ts';
import { receiveFiles } from './receive.ts';

/** Uploads into the drive through this process. Large files may go directly to the object store: partRoutes.ts. */
export function driveUploadRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.post(
    '/api/spaces/:spaceId/drive/upload',
    streamingRoute(async (req, res) => {
      const caller = callerOf(req);
      const { spaceId } = pathOf<'uploadFiles'>(req);
      const body = await receiveFiles(deps, req, {
        spaceId,
        userId: caller.userId,
        status: 200,
        fields: ['containerId'],
        async containerOf({ containerId = driveContainerId }) {
          await authorizeContainer(deps, caller, { spaceId, containerId });
          return containerId;
        },
      });
      answer<'uploadFiles'>(res, 200, body);
    }),
  );

  return router;
}
