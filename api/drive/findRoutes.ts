import { invalidCursor } from '../../models/database/pages.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { damageOf } from '../../models/drive/findings.ts';
import { buildTree } from '../../models/drive/fsTree.ts';
import { searchDrive } from '../../models/drive/search.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { decodeSearch, encodeSearch } from '../frame/searchCursor.ts';
import { authorizeContainer, authorizeItem } from './authorizeDrive.ts';
import { decodeCut } from './cursors.ts';
import { openPath } from './lookup.ts';
import { presentFound } from './presentItem.ts';
import { presentTree, treeText } from './presentTree.ts';

/** Finding items in a drive: the tree, within a budget, and the word search. */
export function driveFindRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/drive/fs/tree', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId } = pathOf<'getDriveTree'>(req);
    const query = queryOf<'getDriveTree'>(req);
    const { containerId = driveContainerId, budget = 200, depth = 100, format = 'json' } = query;
    const from = decodeCut(query.cursor);
    if (from !== undefined && query.path !== undefined) throw invalidCursor();
    if (from === undefined) await authorizeContainer(deps, caller, { spaceId, containerId });
    const { item, place } =
      from === undefined
        ? await openPath(deps, { spaceId, containerId, userId: caller.userId }, query.path ?? '/')
        : await authorizeItem(deps, caller, { spaceId, itemId: from.folderId });
    const root = await buildTree(deps.database, item, { budget, depth, from: from?.cut });
    const tree = { containerId: place.containerId, path: place.path, budget, root };
    if (format === 'text') res.type('text/plain').send(treeText(tree));
    else answer<'getDriveTree'>(res, 200, presentTree(tree));
  });

  router.get('/api/spaces/:spaceId/drive/search', async (req, res) => {
    const { spaceId } = pathOf<'searchDrive'>(req);
    const { q, in: field, containerId = driveContainerId } = queryOf<'searchDrive'>(req);
    await authorizeContainer(deps, callerOf(req), { spaceId, containerId });
    const { limit, cursor } = pageOf(req);
    const { found, next } = await searchDrive(deps.database, {
      spaceId,
      containerId,
      query: q,
      fields: field === undefined ? ['name', 'text'] : [field],
      limit,
      after: decodeSearch(cursor),
    });
    const damaged = await damageOf(
      deps.database,
      found.map(({ item }) => item),
    );
    answer<'searchDrive'>(res, 200, {
      data: found.map((one) => presentFound(one, damaged)),
      nextCursor: next === undefined ? null : encodeSearch(next),
    });
  });

  return router;
}
