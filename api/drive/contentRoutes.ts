import { buffer } from 'node:stream/consumers';
import { isText } from '../../integrations/storage/contentType.ts';
import { maxIndexedTextBytes } from '../../integrations/storage/inspect.ts';
import { decodeCursor, toPage } from '../../models/database/pages.ts';
import type { Content } from '../../models/drive/driveItem.ts';
import { damageOf } from '../../models/drive/findings.ts';
import { driveModels } from '../../models/drive/models.ts';
import { contentOf, restoreVersion } from '../../models/drive/versions.ts';
import { answer } from '../frame/answer.ts';
import { callerOf, changerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { presignedUrl } from '../frame/presignedUrl.ts';
import { pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeItem } from './authorizeDrive.ts';
import { presentItem, presentVersion } from './presentItem.ts';
import { sendContent } from './sendContent.ts';

/** The contents and versions of files. Clients read them here, or directly from the object store with a link. */
export function driveContentRoutes(deps: RouteDeps) {
  const router = createRouter();
  const base = '/api/spaces/:spaceId/drive/items/:itemId';

  router.get(`${base}/content`, async (req, res) => {
    const { version, download = false } = queryOf<'getDriveContent'>(req);
    const { item } = await authorizeItem(deps, callerOf(req), pathOf<'getDriveContent'>(req));
    const content = await contentOf(deps.database, item, version);
    await sendContent(deps, req, res, { name: item.name, content, download });
  });

  router.get(`${base}/url`, async (req, res) => {
    const { version, download = false, expiresIn = 900 } = queryOf<'getDriveUrl'>(req);
    const { item } = await authorizeItem(deps, callerOf(req), pathOf<'getDriveUrl'>(req));
    const content = await contentOf(deps.database, item, version);
    answer<'getDriveUrl'>(res, 200, await presignedUrl(deps, { name: item.name, ...content }, { expiresIn, download }));
  });

  router.get(`${base}/versions`, async (req, res) => {
    const { item } = await authorizeItem(deps, callerOf(req), pathOf<'listDriveVersions'>(req));
    const { limit, cursor } = pageOf(req);
    const below = decodeCursor(cursor, /^\d{1,10}$/);
    const earlier = await driveModels(deps.database).DriveVersion.of(
      item.id,
      limit + 1,
      below === undefined ? undefined : Number(below),
    );
    const all = below === undefined && item.isFile ? [item, ...earlier] : earlier;
    const page = toPage(all, limit, ({ version }) => String(version));
    const damaged = await damageOf(deps.database, page.data);
    const data = page.data.map((row) => presentVersion(row, damaged));
    answer<'listDriveVersions'>(res, 200, { data, nextCursor: page.nextCursor });
  });

  router.post(`${base}/versions/:version/restore`, async (req, res) => {
    const { version, ...where } = pathOf<'restoreDriveVersion'>(req);
    const { item, place } = await authorizeItem(deps, callerOf(req), where);
    const text = await readText(await contentOf(deps.database, item, version));
    const caller = callerOf(req);
    const who = { userId: caller.userId, by: changerOf(caller) };
    const change = { ...where, version, text, ...who, ifMatch: req.get('if-match') };
    const restored = await restoreVersion(deps.database, change, deps.config.drive.keptVersions);
    answer<'restoreDriveVersion'>(res, 200, presentItem({ item: restored, place }));
  });

  /** The text of a small text file, for the search index. Empty for other files. */
  async function readText({ objectKey, size }: Content): Promise<string> {
    if (size === 0 || size > maxIndexedTextBytes) return '';
    const bytes = await buffer(await deps.storage.read(objectKey));
    return isText(bytes) ? bytes.toString('utf8') : '';
  }

  return router;
}
