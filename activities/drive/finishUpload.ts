import { DomainError } from '../../base/errors.ts';
import { statusOf } from '../../integrations/http/statuses.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { type Database, transaction } from '../../models/database/database.ts';
import type { DriveUpload } from '../../models/drive/driveUpload.ts';
import { driveModels } from '../../models/drive/models.ts';
import { type ArrivedFile, placeFile } from '../../models/drive/placeFile.ts';
import type { DriveLimits } from '../../models/drive/uploadSession.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DriveDeps } from './deps.ts';

/** Only ids and codes, because it goes into a workflow's history. */
export type FinishedUpload =
  | { kind: 'placed'; itemId: string }
  /** `refused` is the client's fault. */
  | { kind: 'refused' | 'failed'; code: string; detail: string };

/**
 * Assembles the parts of an upload, reads the whole object once for its hash and type, and places it in the tree. If
 * the store or the database is down, it throws, and Temporal retries. Other failures are a result.
 */
export function createFinishUpload(deps: DriveDeps) {
  return async function finishUpload({ uploadId }: { uploadId: string }): Promise<FinishedUpload> {
    using heartbeat = keepAlive();
    try {
      const upload = await driveModels(deps.database).DriveUpload.findByPk(uploadId);
      if (upload === null) {
        return { kind: 'refused', code: 'UPLOAD_EXPIRED', detail: 'The upload has expired or was cancelled.' };
      }
      if (upload.itemId !== null) return { kind: 'placed', itemId: upload.itemId };
      await assemble(deps.storage, upload);
      const { objectKey, size, target } = upload;
      const { text, ...stored } = await deps.storage.inspect(
        objectKey,
        { fileName: target.fileName, size },
        heartbeat.cancelled,
      );
      const file = { content: { objectKey, ...stored }, text };
      return { kind: 'placed', itemId: await place(deps.database, upload, file, deps.config.drive) };
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind === 'unavailable') throw error;
      return { kind: statusOf[error.kind] < 500 ? 'refused' : 'failed', code: error.code, detail: error.message };
    }
  };
}

/** Makes one object of the parts, unless an earlier attempt or another worker already did so. */
async function assemble({ parts }: ObjectStore, upload: DriveUpload): Promise<void> {
  const { objectKey, storeUploadId, partSizes } = upload;
  const stored = await parts.list(objectKey, storeUploadId, upload.size);
  if (stored === undefined) return;
  const missing = partSizes.flatMap((size, i) =>
    stored.some((part) => part.partNumber === i + 1 && part.size === size) ? [] : [i + 1],
  );
  if (missing.length > 0) {
    const some = missing.slice(0, 10).join(', ');
    throw new DomainError(
      'conflict',
      'UPLOAD_INCOMPLETE',
      `Missing parts: ${missing.length}, such as ${some}. Upload them, and complete the upload again.`,
    );
  }
  await parts.complete(objectKey, storeUploadId, stored.slice(0, partSizes.length));
}

async function place(database: Database, upload: DriveUpload, file: ArrivedFile, limits: DriveLimits): Promise<string> {
  return transaction(database, async (tx) => {
    const now = await driveModels(tx).DriveUpload.findByPk(upload.id, {
      transaction: tx,
      lock: tx.LOCK.UPDATE,
    });
    // Another worker, which was taken for dead, has placed it.
    if (now !== null && now.itemId !== null) return now.itemId;
    const { item } = await placeFile(upload.target, file, { ...limits, tx });
    await upload.complete(item.id, tx);
    return item.id;
  });
}
