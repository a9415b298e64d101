import { toPage } from '../../models/database/pages.ts';
import { type FolderRef, makeFolder } from '../../models/drive/changes.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { damageOf } from '../../models/drive/findings.ts';
import { driveModels } from '../../models/drive/models.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { type BodyOf, bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeContainer, authorizeItem } from './authorizeDrive.ts';
import { decodeChild, encodeChild } from './cursors.ts';
import { openPath, pathOrParent, splitPath } from './lookup.ts';
import { presentItem } from './presentItem.ts';

/** The drive as a whole, and its folders. Single items are in itemRoutes.ts, contents of files in contentRoutes.ts. */
export function driveRoutes(deps: RouteDeps) {
  const { database, config } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/drive', async (req, res) => {
    const { spaceId } = pathOf<'getDrive'>(req);
    const { quotaBytes, maxFileBytes } = config.drive;
    const usedBytes = await driveModels(database).Drive.usedBytesOf(spaceId);
    answer<'getDrive'>(res, 200, {
      spaceId,
      usedBytes,
      quotaBytes: quotaBytes === 0 ? null : quotaBytes,
      maxFileBytes,
    });
  });

  router.get('/api/spaces/:spaceId/drive/items', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId } = pathOf<'listDriveItems'>(req);
    const { parentId, path, containerId = driveContainerId } = queryOf<'listDriveItems'>(req);
    if (parentId !== undefined && path !== undefined) throw pathOrParent();
    if (parentId === undefined) await authorizeContainer(deps, caller, { spaceId, containerId });
    const { item, place } =
      parentId === undefined
        ? await openPath(deps, { spaceId, containerId, userId: caller.userId }, path ?? '/')
        : await authorizeItem(deps, caller, { spaceId, itemId: parentId });
    if (item.kind !== 'folder') {
      const data = [presentItem({ item, place }, await damageOf(database, [item]))];
      return void answer<'listDriveItems'>(res, 200, { data, nextCursor: null });
    }
    const { limit, cursor } = pageOf(req);
    const page = toPage(
      await driveModels(database).DriveItem.children(item.id, limit + 1, decodeChild(cursor)),
      limit,
      encodeChild,
    );
    const damaged = await damageOf(database, page.data);
    const data = page.data.map((child) => presentItem({ item: child, place: place.below(child) }, damaged));
    answer<'listDriveItems'>(res, 200, { data, nextCursor: page.nextCursor });
  });

  router.post('/api/spaces/:spaceId/drive/folders', async (req, res) => {
    const caller = callerOf(req);
    const { userId } = caller;
    const { spaceId } = pathOf<'createDriveFolder'>(req);
    const body = bodyOf<'createDriveFolder'>(req);
    const { containerId = driveContainerId, onConflict = 'error' } = body;
    const { parent, name } = targetOf(body);
    if ('folderId' in parent) await authorizeItem(deps, caller, { spaceId, itemId: parent.folderId });
    else await authorizeContainer(deps, caller, { spaceId, containerId });
    await makeOnce<'createDriveFolder'>(deps, req, res, 'driveItem', async (id) =>
      presentItem(await makeFolder(database, { spaceId, containerId, userId, id, parent, name, onConflict })),
    );
  });

  return router;
}

function targetOf({ path, parentId, name, containerId }: BodyOf<'createDriveFolder'>): {
  parent: FolderRef;
  name: string;
} {
  if (path !== undefined && parentId === undefined && name === undefined) {
    const { names, name: last } = splitPath(path);
    return { parent: { names }, name: last };
  }
  // A folder implies its container. Another container beside it would be silently ignored.
  if (path === undefined && parentId !== undefined && name !== undefined && containerId === undefined)
    return { parent: { folderId: parentId }, name };
  throw pathOrParent();
}
