import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { requireOwner } from './containers.ts';
import { type DriveUpload, uploadLifetimeMs } from './driveUpload.ts';
import { driveModels } from './models.ts';
import type { FileTarget } from './placeFile.ts';

/** Records an upload, and extends its object's lease to the upload's lifetime. */
export async function beginUpload(
  database: Database,
  fields: Pick<DriveUpload, 'id' | 'objectKey' | 'storeUploadId' | 'target' | 'size' | 'userId' | 'spaceId'>,
): Promise<DriveUpload> {
  const createdAt = new Date();
  const expiresAt = new Date(createdAt.getTime() + uploadLifetimeMs);
  return transaction(database, async (tx) => {
    const { Drive, DriveObject, DriveUpload } = driveModels(tx);
    // Under the drive's lock: either the container's purge finds this upload, or this upload finds its container gone.
    await Drive.lock(fields.spaceId, tx);
    await requireOwner(fields.target, tx);
    await DriveObject.extendLease(fields.objectKey, expiresAt, tx);
    const partSize = DriveUpload.partSizeFor(fields.size);
    return DriveUpload.create({ ...fields, partSize, createdAt, expiresAt }, { transaction: tx });
  });
}

/**
 * Gives up the object of an upload that could not begin. If the upload did begin and only the answer to that commit was
 * lost, the upload keeps its object.
 */
export async function giveUpUnlessBegun(
  database: Database,
  { id, spaceId, objectKey }: Pick<DriveUpload, 'id' | 'spaceId' | 'objectKey'>,
): Promise<void> {
  await transaction(database, async (tx) => {
    const { Drive, DriveObject, DriveUpload } = driveModels(tx);
    // Waits for a commit that is still under way, which holds this lock.
    await Drive.wait(spaceId, tx);
    if ((await DriveUpload.findByPk(id, { transaction: tx })) === null) await DriveObject.doom([objectKey], tx);
  });
}

/** Records the operation that completes the upload. Returns one that is running or has succeeded instead. */
export async function beginCompletion(
  database: Database,
  id: string,
  owner: { spaceId: string; userId: string },
  onConflict: FileTarget['onConflict'] | undefined,
): Promise<Operation> {
  return transaction(database, async (tx) => {
    const { DriveObject, DriveUpload } = driveModels(tx);
    const upload = await DriveUpload.open(id, owner, tx);
    const { spaceId, userId } = upload;
    const last = await lastOperation(upload, tx);
    if (last?.status === 'running' || last?.status === 'succeeded') return last;
    const { Operation } = operationModels(tx);
    const operation = await Operation.begin({ kind: 'completeUpload', spaceId, userId, subjectId: id }, tx);
    const target = { ...upload.target, onConflict: onConflict ?? upload.target.onConflict };
    // The upload must not expire while it is being completed.
    const expiresAt = new Date(Date.now() + uploadLifetimeMs);
    await upload.update({ operationId: operation.id, target, expiresAt }, { transaction: tx });
    await DriveObject.extendLease(upload.objectKey, expiresAt, tx);
    return operation;
  });
}

/** Discards the upload and the parts that arrived. Throws 409 if it is being completed, or is completed. */
export async function abortUpload(
  database: Database,
  id: string,
  owner: { spaceId: string; userId: string },
): Promise<void> {
  await transaction(database, async (tx) => {
    const { DriveObject, DriveUpload } = driveModels(tx);
    const upload = await DriveUpload.open(id, owner, tx);
    if (upload.itemId !== null || (await lastOperation(upload, tx))?.status === 'running') {
      throw new DomainError('conflict', 'UPLOAD_COMPLETED', 'The upload is complete or is being completed.');
    }
    await DriveObject.doom([upload.objectKey], tx);
    await upload.destroy({ transaction: tx });
  });
}

/** Discards all uploads into a container that is gone. A completion that is under way finds nothing to complete. */
export async function abortUploadsInto(
  database: Database,
  { spaceId, containerId }: Pick<FileTarget, 'spaceId' | 'containerId'>,
): Promise<void> {
  const { DriveObject, DriveUpload } = driveModels(database);
  const uploads = await DriveUpload.findAll({ where: { spaceId, itemId: null } });
  const into = uploads.filter(({ target }) => target.containerId === containerId);
  await DriveObject.giveUp(into.map(({ objectKey }) => objectKey));
  await DriveUpload.destroy({ where: { id: into.map(({ id }) => id), itemId: null } });
}

async function lastOperation({ operationId }: DriveUpload, tx: Transaction): Promise<Operation | null> {
  return operationId === null ? null : operationModels(tx).Operation.findByPk(operationId, { transaction: tx });
}
