import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { type Database, transaction } from '../database.ts';
import { DomainError, notFound } from '../errors.ts';
import { jsonText } from '../jsonText.ts';
import { Operation } from '../operation.ts';
import { requireOwner } from './containers.ts';
import { Drive } from './drive.ts';
import { DriveObject } from './driveObject.ts';
import type { FileTarget } from './placeFile.ts';

const mebibyte = 1_048_576;
const smallestPartBytes = 16 * mebibyte;
const mostParts = 1_000;

/** How long a client has for all of its parts. */
export const uploadLifetimeMs = 24 * 3_600_000;

/** A file whose parts its client sends straight to the object store. */
export class DriveUpload extends Model {
  declare id: string;
  declare spaceId: string;
  declare userId: string;
  declare objectKey: string;
  declare storeUploadId: string;
  declare target: FileTarget;
  declare size: number;
  declare partSize: number;
  /** The latest try to complete it. */
  declare operationId: string | null;
  /** The file that it became. */
  declare itemId: string | null;
  declare createdAt: Date;
  declare expiresAt: Date;

  /** How large each part must be, by its number from 1. */
  get partSizes(): number[] {
    const count = Math.ceil(this.size / this.partSize);
    return Array.from({ length: count }, (_, i) => Math.min(this.partSize, this.size - i * this.partSize));
  }

  static partSizeFor(size: number): number {
    return Math.max(smallestPartBytes, Math.ceil(size / mostParts / mebibyte) * mebibyte);
  }

  /** Writes the upload down, and keeps its object for as long as the upload lives. */
  static async begin(
    database: Database,
    fields: Pick<DriveUpload, 'id' | 'objectKey' | 'storeUploadId' | 'target' | 'size' | 'userId' | 'spaceId'>,
  ): Promise<DriveUpload> {
    const createdAt = new Date();
    const expiresAt = new Date(createdAt.getTime() + uploadLifetimeMs);
    return transaction(database, async (tx) => {
      // Under the drive's lock, so that a container's purge finds this upload, or this upload finds its container gone.
      await Drive.lock(fields.spaceId, tx);
      await requireOwner(fields.target, tx);
      await DriveObject.extendLease(fields.objectKey, expiresAt, tx);
      const partSize = DriveUpload.partSizeFor(fields.size);
      return DriveUpload.create({ ...fields, partSize, createdAt, expiresAt }, { transaction: tx });
    });
  }

  /** An upload for who began it; nobody else hears of it. */
  static async open(
    id: string,
    { spaceId, userId }: { spaceId: string; userId: string },
    tx?: Transaction,
  ): Promise<DriveUpload> {
    const where = { id, spaceId, userId };
    const upload = await DriveUpload.findOne({ where, transaction: tx, lock: tx?.LOCK.UPDATE });
    if (upload === null) throw notFound('upload');
    if (upload.itemId === null && upload.expiresAt <= new Date()) throw uploadExpired();
    return upload;
  }

  /** Writes the intent to complete it. While one is under way, and once one has succeeded, that one is the answer. */
  static async beginCompletion(
    database: Database,
    id: string,
    owner: { spaceId: string; userId: string },
    onConflict: FileTarget['onConflict'] | undefined,
  ): Promise<Operation> {
    return transaction(database, async (tx) => {
      const upload = await DriveUpload.open(id, owner, tx);
      const { spaceId, userId } = upload;
      const last = await upload.lastOperation(tx);
      if (last?.status === 'running' || last?.status === 'succeeded') return last;
      const operation = await Operation.begin({ kind: 'completeUpload', spaceId, userId, subjectId: id }, tx);
      const target = { ...upload.target, onConflict: onConflict ?? upload.target.onConflict };
      // It must not expire while it is being completed.
      const expiresAt = new Date(Date.now() + uploadLifetimeMs);
      await upload.update({ operationId: operation.id, target, expiresAt }, { transaction: tx });
      await DriveObject.extendLease(upload.objectKey, expiresAt, tx);
      return operation;
    });
  }

  /** The file is in the tree. In the transaction that puts it there, so that it is put there once. */
  async complete(itemId: string, tx: Transaction): Promise<void> {
    await this.update({ itemId }, { transaction: tx });
  }

  private async lastOperation(tx: Transaction): Promise<Operation | null> {
    return this.operationId === null ? null : Operation.findByPk(this.operationId, { transaction: tx });
  }

  /** Gives it up, with what has arrived. 409 when it is being completed, or is completed. */
  static async abort(database: Database, id: string, owner: { spaceId: string; userId: string }): Promise<void> {
    await transaction(database, async (tx) => {
      const upload = await DriveUpload.open(id, owner, tx);
      if (upload.itemId !== null || (await upload.lastOperation(tx))?.status === 'running') {
        throw new DomainError('conflict', 'UPLOAD_COMPLETED', 'The upload is completed, or about to be.');
      }
      await DriveObject.doom([upload.objectKey], tx);
      await upload.destroy({ transaction: tx });
    });
  }

  /** Gives up all that are on their way into a container that is gone. One that is being completed finds nothing to complete. */
  static async abortInto({ spaceId, containerId }: Pick<FileTarget, 'spaceId' | 'containerId'>): Promise<void> {
    const uploads = await DriveUpload.findAll({ where: { spaceId, itemId: null } });
    const into = uploads.filter(({ target }) => target.containerId === containerId);
    await DriveObject.giveUp(into.map(({ objectKey }) => objectKey));
    await DriveUpload.destroy({ where: { id: into.map(({ id }) => id), itemId: null } });
  }

  /** Forgets those whose time is over. Their objects' leases have run out with them. */
  static async purgeExpired(now: Date): Promise<number> {
    return DriveUpload.destroy({ where: { expiresAt: { [Op.lt]: now } } });
  }
}

export function uploadExpired(): DomainError {
  return new DomainError('gone', 'UPLOAD_EXPIRED', 'The upload was given up. Begin it again.');
}

export function defineDriveUploads(sequelize: Sequelize): void {
  DriveUpload.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      spaceId: DataTypes.STRING(40),
      userId: DataTypes.STRING(40),
      objectKey: DataTypes.STRING(64),
      storeUploadId: DataTypes.STRING(1024),
      target: jsonText('target'),
      size: DataTypes.BIGINT.UNSIGNED,
      partSize: DataTypes.BIGINT.UNSIGNED,
      operationId: DataTypes.STRING(40),
      itemId: DataTypes.STRING(40),
      createdAt: DataTypes.DATE(3),
      expiresAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'drive_uploads', timestamps: false, underscored: true },
  );
}
