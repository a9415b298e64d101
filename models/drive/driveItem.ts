import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { along, behind } from '../database/pages.ts';
import { insertInstances, select } from '../database/sql.ts';
import type { DriveModel } from './drive.ts';
import { nameKey } from './names.ts';

/** Apps and repositories are leaves of this tree. Their contents live in containers and on computers of their own. */
export type ItemKind = 'folder' | 'file' | 'symlink' | 'app' | 'repository';

export interface Content {
  objectKey: string;
  size: number;
  contentType: string;
  sha256: Buffer;
}

/** What the writer of a file's content says about it. */
export interface WriterSays {
  modifiedAt: Date | null;
  isExecutable: boolean;
}

const noContent = { objectKey: null, size: null, contentType: null, sha256: null };
const notTrashed = { trashedBy: null, trashedAt: null, trashedFrom: null, purgingAt: null };

/** A position in the list of a folder's children: folders come first, then files, each by name. */
export interface ChildPosition {
  isFile: boolean;
  nameKey: Buffer;
}

export interface NewItem {
  spaceId: string;
  parentId: string;
  kind: ItemKind;
  name: string;
  userId: string;
  id?: string;
  content?: Content;
  /** About the content. Null: it was modified when it was stored. */
  says?: Partial<WriterSays> | undefined;
  /** Where a symlink leads. */
  linkTarget?: string;
  /** Set for a folder that gets levels below it in the same transaction. */
  height?: number;
}

/** One name in a space's tree. An item knows its parent, not its path, so moving a folder changes one row. */
export type DriveItem = InstanceType<DriveItemModel>;
export type DriveItemModel = ReturnType<typeof defineDriveItem>;

export function defineDriveItem(sequelize: Sequelize, Drive: DriveModel) {
  class DriveItem extends Model {
    declare number: number;
    declare id: string;
    declare spaceId: string;
    /** The space's own id if this is the root of a container. */
    declare parentId: string;
    declare kind: ItemKind;
    declare isFile: boolean;
    /** The name as it was given. The root of a container has the container's id as its name. */
    declare name: string;
    declare nameKey: Buffer;
    /** 1, or null in the trash. Items below a trashed item still have 1. */
    declare live: 1 | null;
    /** Children that are not in the trash. */
    declare childCount: number;
    /** Upper bound of the number of levels below this item. It never decreases. */
    declare height: number;
    declare objectKey: string | null;
    declare size: number | null;
    declare contentType: string | null;
    declare sha256: Buffer | null;
    /** 1 for a file's first content, 0 for other kinds. */
    declare version: number;
    /** The drive's revision at the item's last change. 0 for an item that has not changed since before 0.3. */
    declare revision: number;
    /** When a program last wrote the content, if its writer says so. */
    declare modifiedAt: Date | null;
    declare isExecutable: boolean;
    /** Where a symlink leads, unresolved. */
    declare linkTarget: string | null;
    declare createdBy: string;
    declare createdAt: Date;
    declare updatedBy: string;
    declare updatedAt: Date;
    declare trashedBy: string | null;
    declare trashedAt: Date | null;
    /** The container whose trash holds the item. */
    declare trashedFrom: string | null;
    /** Set while the item is being permanently removed and is hidden. */
    declare purgingAt: Date | null;

    get isRoot(): boolean {
      return this.parentId === this.spaceId;
    }

    /** A strong validator: the same tag means the same bytes. Null unless this is a file. */
    get etag(): string | null {
      return this.sha256 === null ? null : `"${this.sha256.toString('hex')}"`;
    }

    get content(): Content | undefined {
      const { objectKey, size, contentType, sha256 } = this;
      if (objectKey === null || size === null || contentType === null || sha256 === null) return undefined;
      return { objectKey, size, contentType, sha256 };
    }

    /** Builds a new item without saving it. */
    static fresh(fields: NewItem): DriveItem {
      const now = new Date();
      const values = {
        id: fields.id ?? newId('driveItem'),
        spaceId: fields.spaceId,
        parentId: fields.parentId,
        kind: fields.kind,
        isFile: fields.kind === 'file',
        ...DriveItem.named(fields.name),
        live: 1,
        childCount: 0,
        height: fields.height ?? 0,
        version: fields.content === undefined ? 0 : 1,
        ...(fields.content ?? noContent),
        modifiedAt: fields.says?.modifiedAt ?? null,
        isExecutable: fields.says?.isExecutable ?? false,
        linkTarget: fields.linkTarget ?? null,
        createdBy: fields.userId,
        createdAt: now,
        updatedBy: fields.userId,
        updatedAt: now,
        ...notTrashed,
      };
      return DriveItem.build(values, { raw: true });
    }

    static async make(fields: NewItem, tx: Transaction): Promise<DriveItem> {
      const item = DriveItem.fresh(fields);
      await DriveItem.insertAll([item], tx);
      return item;
    }

    /** Changes the item as people see it, under the drive's lock. What only counts or hides goes by `update`. */
    async change(values: Record<string, unknown>, tx: Transaction): Promise<void> {
      await this.update({ ...values, revision: await Drive.revisionIn(tx, this.spaceId) }, { transaction: tx });
    }

    /** Saves several new items in one statement. If one name is taken, none is saved. */
    static async insertAll(items: DriveItem[], tx: Transaction): Promise<DriveItem[]> {
      for (const item of items) item.set('revision', await Drive.revisionIn(tx, item.spaceId), { raw: true });
      const first = await insertInstances(tx, items);
      const [only] = items;
      if (items.length === 1 && only !== undefined) return [only.set('number', first, { raw: true })];
      const rows = await select<{ id: string; number: number }>(
        tx,
        'SELECT id, number FROM drive_items WHERE id IN (?)',
        [items.map(({ id }) => id)],
      );
      const numbers = new Map(rows.map(({ id, number }) => [id, number]));
      return items.map((item) => item.set('number', numbers.get(item.id), { raw: true }));
    }

    static named(name: string): { name: string; nameKey: Buffer } {
      return { name, nameKey: nameKey(name) };
    }

    /** Finds an item in any state except "being purged". */
    static async find(id: string, tx?: Transaction): Promise<DriveItem | null> {
      return DriveItem.findOne({ where: { id, purgingAt: null }, transaction: tx });
    }

    /** The child with this name that is not in the trash. */
    static async childOf(parentId: string, name: string, tx?: Transaction): Promise<DriveItem | null> {
      return DriveItem.findOne({ where: { parentId, nameKey: nameKey(name), live: 1 }, transaction: tx });
    }

    static async rootOf(spaceId: string, containerId: string, tx?: Transaction): Promise<DriveItem | null> {
      return DriveItem.childOf(spaceId, containerId, tx);
    }

    /** The children that are not in the trash, in order, after a position. The cost depends only on `limit`. */
    static async children(parentId: string, limit: number, after?: ChildPosition): Promise<DriveItem[]> {
      const read = (where: object, count: number) =>
        DriveItem.findAll({
          where: { parentId, live: 1, ...where },
          order: [
            ['isFile', 'ASC'],
            ['nameKey', 'ASC'],
          ],
          limit: count,
        });
      if (after === undefined) return read({}, limit);
      // Two ranges of the index. As one condition with OR, the server would read the folder from its beginning.
      const same = await read({ isFile: after.isFile, nameKey: { [Op.gt]: after.nameKey } }, limit);
      if (after.isFile || same.length === limit) return same;
      return [...same, ...(await read({ isFile: true }, limit - same.length))];
    }

    /** The files of these folders that are not in the trash, newest first, before a number. */
    static async newestFiles(parentIds: readonly string[], limit: number, before?: number): Promise<DriveItem[]> {
      const where = { parentId: [...parentIds], live: 1, isFile: true };
      const older = before === undefined ? {} : { number: { [Op.lt]: before } };
      return DriveItem.findAll({ where: { ...where, ...older }, order: [['number', 'DESC']], limit });
    }

    /** The items of a container's trash, latest first. `after` is the last item's position. */
    static async trash(
      where: { spaceId: string; containerId: string },
      limit: number,
      after?: { trashedAt: Date; number: number },
    ): Promise<DriveItem[]> {
      const before =
        after &&
        behind('desc', [
          ['trashedAt', after.trashedAt],
          ['number', after.number],
        ]);
      return DriveItem.findAll({
        where: { spaceId: where.spaceId, trashedFrom: where.containerId, purgingAt: null, ...before },
        ...along('drive_items_trash'),
        order: [
          ['trashedAt', 'DESC'],
          ['number', 'DESC'],
        ],
        limit,
      });
    }
  }

  DriveItem.init(
    {
      number: { type: DataTypes.BIGINT.UNSIGNED, primaryKey: true, autoIncrement: true },
      id: DataTypes.STRING(40),
      spaceId: DataTypes.STRING(40),
      parentId: DataTypes.STRING(40),
      kind: DataTypes.STRING(20),
      isFile: DataTypes.BOOLEAN,
      name: DataTypes.STRING(255),
      nameKey: DataTypes.BLOB,
      live: DataTypes.INTEGER,
      childCount: DataTypes.INTEGER.UNSIGNED,
      height: DataTypes.INTEGER.UNSIGNED,
      objectKey: DataTypes.STRING(64),
      size: DataTypes.BIGINT.UNSIGNED,
      contentType: DataTypes.STRING(255),
      sha256: DataTypes.BLOB,
      version: DataTypes.INTEGER.UNSIGNED,
      revision: DataTypes.BIGINT.UNSIGNED,
      modifiedAt: DataTypes.DATE(3),
      isExecutable: DataTypes.BOOLEAN,
      linkTarget: DataTypes.TEXT,
      createdBy: DataTypes.STRING(40),
      createdAt: DataTypes.DATE(3),
      updatedBy: DataTypes.STRING(40),
      updatedAt: DataTypes.DATE(3),
      trashedBy: DataTypes.STRING(40),
      trashedAt: DataTypes.DATE(3),
      trashedFrom: DataTypes.STRING(80),
      purgingAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'drive_items', timestamps: false, underscored: true },
  );
  return DriveItem;
}
