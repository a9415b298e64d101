import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { jsonText } from '../../base/text.ts';
import type { Changer } from '../apps/changes.ts';
import type { FileTarget } from './placeFile.ts';

const mebibyte = 1_048_576;
const smallestPartBytes = 16 * mebibyte;
const mostParts = 1_000;

/** How long a client has to send all parts. */
export const uploadLifetimeMs = 24 * 3_600_000;

/** A file whose parts the client sends directly to the object store. */
export type DriveUpload = InstanceType<ReturnType<typeof defineDriveUpload>>;

export function defineDriveUpload(sequelize: Sequelize) {
  class DriveUpload extends Model {
    declare id: string;
    declare spaceId: string;
    declare userId: string;
    declare objectKey: string;
    declare storeUploadId: string;
    declare target: FileTarget;
    declare size: number;
    declare partSize: number;
    /** The latest attempt to complete the upload. */
    declare operationId: string | null;
    /** The file that the upload became. */
    declare itemId: string | null;
    declare createdAt: Date;
    declare expiresAt: Date;

    /** The required size of each part, in order. Part numbers start at 1. */
    get partSizes(): number[] {
      const count = Math.ceil(this.size / this.partSize);
      return Array.from({ length: count }, (_, i) => Math.min(this.partSize, this.size - i * this.partSize));
    }

    static partSizeFor(size: number): number {
      return Math.max(smallestPartBytes, Math.ceil(size / mostParts / mebibyte) * mebibyte);
    }

    /** The upload, for the user who began it. For other users it does not exist (404). */
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

    /**
     * Called when a user gets links for the parts, or completes the upload. If that user comes with another API key
     * than the upload began with, the content's author is no longer known.
     */
    async noteSharer({ apiKeyId }: Changer): Promise<void> {
      if (apiKeyId === null || this.target.by === undefined || this.target.by.apiKeyId === apiKeyId) return;
      const { by: _, ...target } = this.target;
      await this.update({ target });
    }

    /** Records that the file is in the tree, in the transaction that puts it there, so that it is put there once. */
    async complete(itemId: string, tx: Transaction): Promise<void> {
      await this.update({ itemId }, { transaction: tx });
    }

    /** Deletes expired uploads. The leases of their objects end at the same time. */
    static async purgeExpired(now: Date): Promise<number> {
      return DriveUpload.destroy({ where: { expiresAt: { [Op.lt]: now } } });
    }
  }

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
  return DriveUpload;
}

export function uploadExpired(): DomainError {
  return new DomainError('gone', 'UPLOAD_EXPIRED', 'The upload has expired or was cancelled. Start it again.');
}
