import { moveItem, restoreItem, trashItem } from '../../models/drive/changes.ts';
import { damageOf } from '../../models/drive/findings.ts';
import { beginPurge } from '../../models/drive/purgeItems.ts';
import { answer } from '../frame/answer.ts';
import { callerOf, changerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { answerLater, failureOf, runOperation } from '../frame/operationAnswer.ts';
import { bodyOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeAnyItem, authorizeContainer, authorizeItem } from './authorizeDrive.ts';
import { pathOrParent, splitPath } from './lookup.ts';
import { presentItem } from './presentItem.ts';

/** Reads, moves, deletes and restores single items of the drive. */
export function driveItemRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/drive/items/:itemId', async (req, res) => {
    const found = await authorizeAnyItem(deps, callerOf(req), pathOf<'getDriveItem'>(req));
    answer<'getDriveItem'>(res, 200, presentItem(found, await damageOf(database, [found.item])));
  });

  router.patch('/api/spaces/:spaceId/drive/items/:itemId', async (req, res) => {
    const caller = callerOf(req);
    const where = pathOf<'updateDriveItem'>(req);
    const { name, parentId, path, containerId, onConflict = 'error' } = bodyOf<'updateDriveItem'>(req);
    const [byPath, byParent] = [path !== undefined, parentId !== undefined || name !== undefined];
    // `containerId` only makes sense with a path. With an id or a name alone it would be silently ignored.
    if (byPath === byParent || (containerId !== undefined && !byPath)) throw pathOrParent();
    const { place } = await authorizeItem(deps, caller, where);
    const who = { userId: caller.userId, by: changerOf(caller) };
    const change = { ...where, ...who, onConflict, ifMatch: req.get('if-match') };
    if (path !== undefined) {
      const container = {
        spaceId: where.spaceId,
        containerId: containerId ?? place.containerId,
        ...who,
      };
      await authorizeContainer(deps, caller, container);
      const target = splitPath(path);
      const parent = { ...container, names: target.names };
      return void answer<'updateDriveItem'>(
        res,
        200,
        presentItem(await moveItem(database, { ...change, parent, name: target.name })),
      );
    }
    if (parentId !== undefined) await authorizeItem(deps, caller, { ...where, itemId: parentId });
    const parent = parentId === undefined ? undefined : { folderId: parentId };
    answer<'updateDriveItem'>(res, 200, presentItem(await moveItem(database, { ...change, parent, name })));
  });

  router.delete('/api/spaces/:spaceId/drive/items/:itemId', async (req, res) => {
    const caller = callerOf(req);
    const where = pathOf<'deleteDriveItem'>(req);
    const { permanent = false } = queryOf<'deleteDriveItem'>(req);
    const change = { ...where, userId: caller.userId, by: changerOf(caller), ifMatch: req.get('if-match') };
    if (!permanent) {
      await authorizeItem(deps, caller, where);
      await trashItem(database, change);
      return void res.status(204).end();
    }
    await authorizeAnyItem(deps, caller, where);
    const operation = await beginPurge(database, change);
    const ended = await runOperation(deps, req, operation);
    if (ended === undefined) return answerLater(res, operation);
    if (ended.status !== 'succeeded') throw failureOf(ended);
    res.status(204).end();
  });

  router.post('/api/spaces/:spaceId/drive/items/:itemId/restore', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId, itemId } = pathOf<'restoreDriveItem'>(req);
    const { parentId, name, onConflict = 'error' } = bodyOf<'restoreDriveItem'>(req) ?? {};
    const who = { userId: caller.userId, by: changerOf(caller) };
    await authorizeAnyItem(deps, caller, { spaceId, itemId });
    if (parentId !== undefined) await authorizeItem(deps, caller, { spaceId, itemId: parentId });
    answer<'restoreDriveItem'>(
      res,
      200,
      presentItem(await restoreItem(database, { itemId, spaceId, folderId: parentId, name, onConflict, ...who })),
    );
  });

  return router;
}
