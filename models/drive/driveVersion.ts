import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { type Database, transaction } from '../database.ts';
import { DomainError, notFound } from '../errors.ts';
import { Drive } from './drive.ts';
import { type Content, DriveItem } from './driveItem.ts';
import { DriveObject } from './driveObject.ts';
import { requireMatch } from './match.ts';
import { indexWords } from './wordIndex.ts';

/** What a file held before. Its present content is in the file's own row. */
export class DriveVersion extends Model {
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

  /** Gives a file its next content, and keeps the one before as a version; the oldest beyond `keptVersions` go. */
  static async replace(
    item: DriveItem,
    content: Content,
    options: { userId: string; keptVersions: number; tx: Transaction },
  ): Promise<void> {
    const { userId, keptVersions, tx } = options;
    const before = item.content;
    if (before !== undefined) {
      await DriveVersion.create(
        { itemId: item.id, version: item.version, ...before, createdBy: item.updatedBy, createdAt: item.updatedAt },
        { transaction: tx },
      );
    }
    const change = { ...content, version: item.version + 1, updatedBy: userId, updatedAt: new Date() };
    await item.update(change, { transaction: tx });
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
      where: { itemId, ...(below === undefined ? {} : { version: { [Op.lt]: below } }) },
      order: [['version', 'DESC']],
      limit,
    });
  }
}

/** What a file holds, or held in an earlier version, with what a reader compares it by. */
export async function contentOf(
  item: DriveItem,
  version?: number,
): Promise<Content & { etag: string; modifiedAt: Date }> {
  if (!item.isFile) throw new DomainError('conflict', 'NOT_A_FILE', 'The item is no file.');
  const current = version === undefined || version === item.version;
  const row = current ? item : await DriveVersion.findOne({ where: { itemId: item.id, version } });
  if (row?.content === undefined || row.etag === null) throw notFound('version');
  return { ...row.content, etag: row.etag, modifiedAt: row instanceof DriveVersion ? row.createdAt : row.updatedAt };
}

/** Makes an earlier content the present one, as a version of its own: what is there now is kept like any other. */
export async function restoreVersion(
  database: Database,
  change: {
    spaceId: string;
    itemId: string;
    version: number;
    /** What the version says, if it is a small text. */
    text: string;
    userId: string;
    ifMatch?: string | undefined;
  },
  keptVersions: number,
): Promise<DriveItem> {
  const { spaceId, itemId, version, text, userId, ifMatch } = change;
  return transaction(database, async (tx) => {
    const drive = await Drive.lock(spaceId, tx);
    const item = await DriveItem.findOne({ where: { id: itemId, spaceId, live: 1 }, transaction: tx });
    if (item === null) throw notFound('item');
    requireMatch(item, ifMatch);
    if (item.version === version) return item;
    const earlier = await DriveVersion.findOne({ where: { itemId, version }, transaction: tx });
    if (earlier === null) throw notFound('version');
    await earlier.destroy({ transaction: tx });
    await DriveVersion.replace(item, earlier.content, { userId, keptVersions, tx });
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'text', text, tx);
    return item;
  });
}

export function defineDriveVersions(sequelize: Sequelize): void {
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
}
