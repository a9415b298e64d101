import { DataTypes, Model, type Sequelize, type Transaction } from 'sequelize';
import { behind } from '../database/pages.ts';
import type { Content, DriveItem, WriterSays } from './driveItem.ts';
import type { DriveObjectModel } from './driveObject.ts';

/** An earlier content of a file. The current content is in the file's own row. */
export type DriveVersion = InstanceType<ReturnType<typeof defineDriveVersion>>;

export function defineDriveVersion(sequelize: Sequelize, DriveObject: DriveObjectModel) {
  class DriveVersion extends Model {
    declare itemId: string;
    declare version: number;
    declare objectKey: string;
    declare size: number;
    declare contentType: string;
    declare sha256: Buffer;
    declare createdBy: string;
    declare createdAt: Date;

    get etag(): string {
      return `"${this.sha256.toString('hex')}"`;
    }

    get content(): Content {
      const { objectKey, size, contentType, sha256 } = this;
      return { objectKey, size, contentType, sha256 };
    }

    /**
     * Gives a file its next content and keeps the previous one as a version, unless the new one `supersedes` it.
     * Versions beyond `keptVersions` are removed, oldest first.
     */
    static async replace(
      item: DriveItem,
      content: Content,
      options: {
        userId: string;
        keptVersions: number;
        says?: Partial<WriterSays> | undefined;
        supersedes?: boolean | undefined;
        tx: Transaction;
      },
    ): Promise<void> {
      const { userId, keptVersions, says, supersedes = false, tx } = options;
      const before = item.content;
      if (before !== undefined && supersedes) await DriveObject.doom([before.objectKey], tx);
      else if (before !== undefined) {
        await DriveVersion.create(
          { itemId: item.id, version: item.version, ...before, createdBy: item.updatedBy, createdAt: item.updatedAt },
          { transaction: tx },
        );
      }
      const { modifiedAt = null, isExecutable = item.isExecutable } = says ?? {};
      const now = { version: item.version + 1, updatedBy: userId, updatedAt: new Date() };
      await item.change({ ...content, modifiedAt, isExecutable, ...now }, tx);
      const old = await DriveVersion.findAll({
        where: { itemId: item.id },
        order: [['version', 'DESC']],
        offset: keptVersions,
        limit: 1_000,
        transaction: tx,
      });
      await DriveObject.doom(
        old.map(({ objectKey }) => objectKey),
        tx,
      );
      for (const version of old) await version.destroy({ transaction: tx });
    }

    /** Newest first. */
    static async of(itemId: string, limit: number, below?: number): Promise<DriveVersion[]> {
      return DriveVersion.findAll({
        where: { itemId, ...behind('desc', below === undefined ? undefined : [['version', below]]) },
        order: [['version', 'DESC']],
        limit,
      });
    }
  }

  DriveVersion.init(
    {
      itemId: { type: DataTypes.STRING(40), primaryKey: true },
      version: { type: DataTypes.INTEGER.UNSIGNED, primaryKey: true },
      objectKey: DataTypes.STRING(64),
      size: DataTypes.BIGINT.UNSIGNED,
      contentType: DataTypes.STRING(255),
      sha256: DataTypes.BLOB,
      createdBy: DataTypes.STRING(40),
      createdAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'drive_versions', timestamps: false, underscored: true },
  );
  return DriveVersion;
}
