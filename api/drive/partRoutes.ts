import { DomainError } from '../../base/errors.ts';
import { openLiving } from '../../models/drive/changes.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { newObjectKey } from '../../models/drive/driveObject.ts';
import { type DriveUpload, uploadLifetimeMs } from '../../models/drive/driveUpload.ts';
import { driveModels } from '../../models/drive/models.ts';
import { joinPath } from '../../models/drive/names.ts';
import { previewTarget } from '../../models/drive/placeFile.ts';
import { abortUpload, beginCompletion, beginUpload, giveUpUnlessBegun } from '../../models/drive/uploads.ts';
import { answer } from '../frame/answer.ts';
import { type Caller, callerOf, changerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { answerLater, failureOf, runOperation } from '../frame/operationAnswer.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeContainer } from './authorizeDrive.ts';
import { splitPath } from './lookup.ts';
import { presentItem } from './presentItem.ts';

/** Large files: the client sends the parts directly to the object store with signed links, and can resend them. */
export function drivePartRoutes(deps: RouteDeps) {
  const { database, storage, config } = deps;
  const { DriveObject, DriveUpload } = driveModels(database);
  const router = createRouter();

  router.post('/api/spaces/:spaceId/drive/uploads', async (req, res) => {
    const caller = callerOf(req);
    const { userId } = caller;
    const { spaceId } = pathOf<'createUpload'>(req);
    const { path, size, containerId = driveContainerId, onConflict = 'error' } = bodyOf<'createUpload'>(req);
    await authorizeContainer(deps, caller, { spaceId, containerId });
    const { names, name } = splitPath(path);
    const ifMatch = req.get('if-match');
    const target = {
      spaceId,
      containerId,
      userId,
      by: changerOf(caller),
      names: [...names, name],
      pathOf: 'file' as const,
      fileName: name,
      onConflict,
      ifMatch,
    };
    if (size > config.drive.maxFileBytes) throw fileTooLarge(config.drive.maxFileBytes);
    await makeOnce<'createUpload', { id: string }>(
      deps,
      req,
      res,
      'driveUpload',
      async (id) => {
        if ((await DriveUpload.findByPk(id)) === null) await begin(id);
        return { id };
      },
      { show: async (kept) => describe(await open(caller, { spaceId, uploadId: kept.id })) },
    );

    /** If the process is killed in between, the object's lease expires. */
    async function begin(id: string): Promise<void> {
      await previewTarget(database, target);
      const objectKey = newObjectKey();
      await DriveObject.begin(database, { objectKey, spaceId, bytes: size, quotaBytes: config.drive.quotaBytes });
      try {
        const storeUploadId = await storage.parts.begin(objectKey);
        await beginUpload(database, { id, spaceId, userId, objectKey, storeUploadId, target, size });
      } catch (error) {
        await giveUpUnlessBegun(database, { id, spaceId, objectKey });
        throw error;
      }
    }
  });

  router.get('/api/spaces/:spaceId/drive/uploads/:uploadId', async (req, res) => {
    answer<'getUpload'>(res, 200, await describe(await open(callerOf(req), pathOf<'getUpload'>(req))));
  });

  router.delete('/api/spaces/:spaceId/drive/uploads/:uploadId', async (req, res) => {
    const upload = await open(callerOf(req), pathOf<'abortUpload'>(req));
    await abortUpload(database, upload.id, upload);
    res.status(204).end();
  });

  router.post('/api/spaces/:spaceId/drive/uploads/:uploadId/complete', async (req, res) => {
    const upload = await open(callerOf(req), pathOf<'completeUpload'>(req));
    const { onConflict } = bodyOf<'completeUpload'>(req) ?? {};
    const operation = await beginCompletion(database, upload.id, upload, onConflict);
    const ended = await runOperation(deps, req, operation);
    if (ended === undefined) return answerLater(res, operation);
    if (ended.status !== 'succeeded') throw failureOf(ended);
    answer<'completeUpload'>(
      res,
      200,
      presentItem(await openLiving(database, upload.spaceId, String(ended.result?.itemId))),
    );
  });

  /** An upload belongs to the user who began it, while that user may write to its container. */
  async function open(caller: Caller, where: { spaceId: string; uploadId: string }): Promise<DriveUpload> {
    const { spaceId, uploadId } = where;
    const upload = await DriveUpload.open(uploadId, { spaceId, userId: caller.userId });
    await authorizeContainer(deps, caller, upload.target);
    await upload.noteSharer(changerOf(caller));
    return upload;
  }

  /** The upload with links for the missing parts. Parts that have arrived need not be sent again. */
  async function describe(upload: DriveUpload) {
    const { objectKey: key, storeUploadId: uploadId, expiresAt, partSizes } = upload;
    if (upload.itemId !== null) return presentUpload(upload, []);
    const stored = await storage.parts.list(key, uploadId, upload.size);
    if (stored === undefined) return presentUpload(upload, []);
    const sizes = new Map(stored.map((part) => [part.partNumber, part.size]));
    const seconds = Math.min(
      uploadLifetimeMs / 1_000,
      Math.max(1, Math.floor((expiresAt.getTime() - Date.now()) / 1_000)),
    );
    const missing = partSizes.flatMap((size, i) => (sizes.get(i + 1) === size ? [] : [{ partNumber: i + 1, size }]));
    const links = missing.map(async (part) => ({
      ...part,
      url: await storage.parts.presign({ key, uploadId, ...part }, seconds),
    }));
    return presentUpload(upload, await Promise.all(links));
  }

  return router;
}

function fileTooLarge(maxBytes: number): DomainError {
  return new DomainError('tooLarge', 'FILE_TOO_LARGE', `A file has at most ${Math.floor(maxBytes / 1_048_576)} MiB.`);
}

/** An upload with the parts that are still missing. */
function presentUpload(upload: DriveUpload, parts: { partNumber: number; size: number; url: string }[]) {
  return {
    id: upload.id,
    containerId: upload.target.containerId,
    path: joinPath(upload.target.names),
    size: upload.size,
    partSize: upload.partSize,
    parts,
    itemId: upload.itemId,
    createdAt: time(upload.createdAt),
    expiresAt: time(upload.expiresAt),
  };
}
