import type { Request } from 'express';
import { asNotFound, notFound } from '../../base/errors.ts';
import type { Database } from '../../models/database/database.ts';
import { openLiving, type Placed, trashItem } from '../../models/drive/changes.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import type { DriveItem } from '../../models/drive/driveItem.ts';
import { driveModels } from '../../models/drive/models.ts';
import { checkName } from '../../models/drive/names.ts';
import { findByPath } from '../../models/drive/place.ts';
import type { ArrivedFile } from '../../models/drive/placeFile.ts';
import { UploadSession } from '../../models/drive/uploadSession.ts';
import { contentOf } from '../../models/drive/versions.ts';
import type { Role } from '../../models/identity/tables.ts';
import { defaultSpaceOf } from '../chat/authorizeThread.ts';
import { sendContent } from '../drive/sendContent.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { authorizeOperation, authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { callerOf, changerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { readMultipart, streamingRoute } from '../frame/multipart.ts';
import { pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { requireStillAllowed } from '../frame/stillAllowed.ts';
import { refused } from './refusals.ts';

/** The folder of the drive in which uploaded files are, each in a folder named like its purpose. */
const folder = 'openai';
const defaultPurpose = 'user_data';
const purposes = ['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'];
const maxPurposes = 100;
/** Fields that OpenAI's clients may send. A file stays until it is deleted. */
const fields = ['purpose', 'expires_after[anchor]', 'expires_after[seconds]'];

/** `/v1/files`: files of the space's drive, for messages that name them by their id. */
export function fileRoutes(deps: RouteDeps) {
  const { config, database, storage } = deps;
  const router = createRouter();
  const base = '/v1/files/:fileId';

  router.post(
    '/v1/files',
    streamingRoute(async (req, res) => {
      const { userId } = callerOf(req);
      const spaceId = await spaceOf(req, 'editor');
      await using session = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
      const sent: { purpose?: string } & Record<string, string> = {};
      const files: { file: ArrivedFile; fileName: string }[] = [];
      await readMultipart(req, { fields, maxFiles: 1, allFields: sent }, async ({ bytes, fileName }) => {
        checkName(fileName);
        files.push({ fileName, file: await session.receive(bytes, fileName) });
      });
      const [arrived] = files;
      if (arrived === undefined) throw refused('CONTENT_REQUIRED', '/file', 'The field `file` is missing.');
      const { purpose = defaultPurpose } = sent;
      if (!purposes.includes(purpose)) {
        throw refused('PURPOSE_UNKNOWN', '/purpose', `The purpose must be one of ${purposes.join(', ')}.`);
      }
      await requireStillAllowed(deps, req);
      const { fileName, file } = arrived;
      const names = [folder, purpose, fileName];
      const where = { spaceId, userId, by: changerOf(callerOf(req)), containerId: driveContainerId };
      const target = { ...where, names, pathOf: 'file', fileName, onConflict: 'rename' } as const;
      const [placed] = await session.place([{ target, file }]);
      if (placed === undefined) throw new Error('Unreachable: a file is placed for each that is given.');
      answer<'uploadOpenAiFile'>(res, 200, present(placed.item, purpose));
    }),
  );

  router.get('/v1/files', async (req, res) => {
    const spaceId = await spaceOf(req, 'viewer');
    const { purpose, after, limit = 100 } = queryOf<'listOpenAiFiles'>(req);
    const folders = await foldersOf(spaceId, purpose);
    const last = after === undefined ? undefined : (await openFile(database, spaceId, after)).item.number;
    const ids = [...folders.keys()];
    const files = ids.length === 0 ? [] : await driveModels(database).DriveItem.newestFiles(ids, limit + 1, last);
    const data = files.slice(0, limit).map((item) => present(item, folders.get(item.parentId) ?? defaultPurpose));
    const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
    answer<'listOpenAiFiles'>(res, 200, { object: 'list', data, ...ends, has_more: files.length > limit });
  });

  router.get(base, async (req, res) => {
    const { fileId } = pathOf<'getOpenAiFile'>(req);
    const found = await open(req, fileId);
    answer<'getOpenAiFile'>(res, 200, present(found.item, purposeOf(found)));
  });

  router.get(`${base}/content`, async (req, res) => {
    const { fileId } = pathOf<'getOpenAiFileContent'>(req);
    const { item } = await open(req, fileId);
    const content = await contentOf(database, item, undefined);
    await sendContent(deps, req, res, { name: item.name, content, download: true });
  });

  router.delete(base, async (req, res) => {
    const { userId } = callerOf(req);
    const { fileId } = pathOf<'deleteOpenAiFile'>(req);
    const { spaceId } = (await open(req, fileId)).item;
    await trashItem(database, { spaceId, itemId: fileId, userId, by: changerOf(callerOf(req)) });
    answer<'deleteOpenAiFile'>(res, 200, { id: fileId, object: 'file', deleted: true });
  });

  /** The space that the request names, or the caller's default one, if the caller has the role there. */
  async function spaceOf(req: Request, role: Role): Promise<string> {
    const caller = callerOf(req);
    const spaceId = req.get('x-space-id') ?? (await defaultSpaceOf(deps, caller));
    await authorizeSpace(deps, caller, spaceId, role);
    return spaceId;
  }

  /** Any file of a drive, if the caller has the operation's role in its space. For all others it does not exist. */
  async function open(req: Request, fileId: string): Promise<Placed> {
    const item = await driveModels(database).DriveItem.find(fileId);
    if (item === null) throw notFound('file');
    await authorizeOperation(deps, req, item.spaceId).catch((error: unknown) => {
      throw asNotFound(error, 'file');
    });
    return openFile(database, item.spaceId, fileId);
  }

  /** The folders of the purposes, or of one of them, by their ids. */
  async function foldersOf(spaceId: string, purpose: string | undefined): Promise<Map<string, string>> {
    const names = purpose === undefined ? [folder] : [folder, purpose];
    const found = await findByPath(database, { spaceId, containerId: driveContainerId, names });
    if (found === undefined) return new Map();
    if (purpose !== undefined) return new Map([[found.item.id, purpose]]);
    const children = await driveModels(database).DriveItem.children(found.item.id, maxPurposes);
    return new Map(children.filter(({ kind }) => kind === 'folder').map(({ id, name }) => [id, name]));
  }

  return router;
}

async function openFile(database: Database, spaceId: string, fileId: string): Promise<Placed> {
  const found = await openLiving(database, spaceId, fileId);
  if (found.item.content === undefined || found.place.containerId !== driveContainerId) throw notFound('file');
  return found;
}

function purposeOf({ place }: Placed): string {
  const [top, purpose, ...rest] = place.path.split('/').slice(1);
  return top === folder && rest.length === 1 && purpose !== undefined ? purpose : defaultPurpose;
}

function present(item: DriveItem, purpose: string): AnswerOf<'getOpenAiFile'> {
  const { id, name: filename, content, createdAt } = item;
  if (content === undefined) throw notFound('file');
  const created_at = Math.floor(createdAt.getTime() / 1_000);
  return { id, object: 'file', bytes: content.size, created_at, filename, purpose, status: 'processed' };
}
