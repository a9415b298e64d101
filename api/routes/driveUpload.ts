import { driveContainerId } from '../../models/drive/containers.ts';
import { authorizeContainer } from '../auth/authorizeDrive.ts';
import { callerOf } from '../auth/caller.ts';
import type { RouteDeps } from '../deps.ts';
import { receiveFiles } from '../driveReceive.ts';
import { streamingRoute } from '../multipart.ts';
import { pathOf } from '../request.ts';
import { createRouter } from '../router.ts';

/** Files into the drive, through this process. The large ones may go straight to the object store: driveParts.ts. */
export function driveUploadRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.post(
    '/api/spaces/:spaceId/drive/upload',
    streamingRoute(async (req, res) => {
      const caller = callerOf(req);
      const { spaceId } = pathOf<'uploadFiles'>(req);
      const { status, body } = await receiveFiles(deps, req, {
        spaceId,
        userId: caller.userId,
        status: 200,
        fields: ['containerId'],
        async containerOf({ containerId = driveContainerId }) {
          await authorizeContainer(deps, caller, { spaceId, containerId });
          return containerId;
        },
      });
      res.status(status).json(body);
    }),
  );

  return router;
}
