import { toPage } from '../../models/database/pages.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { damageOf } from '../../models/drive/findings.ts';
import { driveModels } from '../../models/drive/models.ts';
import { findPlaces } from '../../models/drive/place.ts';
import { operationModels } from '../../models/operations/operation.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { answerLater, failureOf, runOperation } from '../frame/operationAnswer.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeContainer } from './authorizeDrive.ts';
import { decodeTrashed, encodeTrashed } from './cursors.ts';
import { presentItem } from './presentItem.ts';

/** The trash of a drive, or of another container. */
export function driveTrashRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/drive/trash', async (req, res) => {
    const { spaceId } = pathOf<'listTrash'>(req);
    const { containerId = driveContainerId } = queryOf<'listTrash'>(req);
    await authorizeContainer(deps, callerOf(req), { spaceId, containerId });
    const { limit, cursor } = pageOf(req);
    const trash = await driveModels(deps.database).DriveItem.trash(
      { spaceId, containerId },
      limit + 1,
      decodeTrashed(cursor),
    );
    const page = toPage(trash, limit, encodeTrashed);
    const places = await findPlaces(
      deps.database,
      page.data.map(({ id }) => id),
    );
    const damaged = await damageOf(deps.database, page.data);
    const data = page.data.flatMap((item) => {
      const place = places.get(item.id);
      return place === undefined ? [] : [presentItem({ item, place }, damaged)];
    });
    answer<'listTrash'>(res, 200, { data, nextCursor: page.nextCursor });
  });

  router.delete('/api/spaces/:spaceId/drive/trash', async (req, res) => {
    const { userId } = callerOf(req);
    const { spaceId } = pathOf<'emptyTrash'>(req);
    const { containerId = driveContainerId } = queryOf<'emptyTrash'>(req);
    await authorizeContainer(deps, callerOf(req), { spaceId, containerId });
    const operation = await operationModels(deps.database).Operation.begin({
      kind: 'emptyTrash',
      spaceId,
      userId,
      subjectId: containerId,
    });
    const ended = await runOperation(deps, req, operation);
    if (ended === undefined) return answerLater(res, operation);
    if (ended.status !== 'succeeded') throw failureOf(ended);
    res.status(204).end();
  });

  return router;
}
