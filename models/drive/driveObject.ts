import { randomBytes } from 'node:crypto';
import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, insertInstance } from '../database/sql.ts';
import type { DriveModel } from './drive.ts';
import { uploadExpired } from './driveUpload.ts';

/** `arriving` until its owner's row is written, `kept` while it has an owner, `doomed` until it is removed. */
export type ObjectState = 'arriving' | 'kept' | 'doomed';

/** A writer that is silent for this long counts as dead, and the bytes it sent are removed. */
export const leaseMs = 5 * 60_000;
/** An abandoned request reaches the store within this time, or never. */
const lateArrivalMs = 15 * 60_000;

const doomed = { state: 'doomed', leaseExpiresAt: null };

export function newObjectKey(): string {
  return randomBytes(20).toString('hex');
}

/**
 * One object in the object store. Its row is committed before the first byte is sent, and deleted after the object is
 * gone. So the store never holds an object without a row, even if a process is killed in between.
 */
export type DriveObject = InstanceType<DriveObjectModel>;
export type DriveObjectModel = ReturnType<typeof defineDriveObject>;

export function defineDriveObject(sequelize: Sequelize, Drive: DriveModel) {
  class DriveObject extends Model {
    /** Flat and random: names exist only in the tree. */
    declare objectKey: string;
    declare spaceId: string;
    declare state: ObjectState;
    /** The object was kept at some time, so the store has no loose parts of it. */
    declare isComplete: boolean;
    /** The bytes that the drive's account counts for this object so far. */
    declare size: number;
    declare leaseExpiresAt: Date | null;
    declare createdAt: Date;

    /** Records an arriving object, and counts its first bytes (or all of them) against the quota. */
    static async begin(
      database: Database,
      fields: { objectKey: string; spaceId: string; bytes: number; quotaBytes: number },
    ): Promise<DriveObject> {
      const { objectKey, spaceId, bytes, quotaBytes } = fields;
      const createdAt = new Date();
      const leaseExpiresAt = new Date(createdAt.getTime() + leaseMs);
      return transaction(database, async (tx) => {
        await Drive.reserve(spaceId, bytes, quotaBytes, tx);
        const arriving = { state: 'arriving', isComplete: false, leaseExpiresAt };
        const object = DriveObject.build({ objectKey, spaceId, ...arriving, size: bytes, createdAt });
        await insertInstance(tx, object);
        return object;
      });
    }

    /** Counts the next bytes of an arriving object against the quota before they are stored. */
    async reserve(database: Database, bytes: number, quotaBytes: number): Promise<void> {
      await transaction(database, async (tx) => {
        await Drive.reserve(this.spaceId, bytes, quotaBytes, tx);
        await DriveObject.changeArriving(
          this.objectKey,
          { size: this.size + bytes, leaseExpiresAt: new Date(Date.now() + leaseMs) },
          tx,
        );
      });
      this.size += bytes;
    }

    static async renewLeases(objectKeys: string[]): Promise<void> {
      await DriveObject.update(
        { leaseExpiresAt: new Date(Date.now() + leaseMs) },
        { where: { objectKey: objectKeys, state: 'arriving' } },
      );
    }

    static async extendLease(objectKey: string, until: Date, tx: Transaction): Promise<void> {
      await DriveObject.changeArriving(objectKey, { leaseExpiresAt: until }, tx);
    }

    /** Runs in the transaction that writes the object's owner. The object must be complete in the store. */
    static async keep(objectKey: string, sha256: Buffer, tx: Transaction): Promise<void> {
      const kept = { state: 'kept', isComplete: true, leaseExpiresAt: null, sha256, keptAt: new Date() };
      await DriveObject.changeArriving(objectKey, kept, tx);
    }

    /** Like `keep`, for an object from the reserve, whose bytes are counted only now. Throws 413 `QUOTA_EXCEEDED`. */
    static async keepReserved(
      objectKey: string,
      { spaceId, size, sha256, quotaBytes }: { spaceId: string; size: number; sha256: Buffer; quotaBytes: number },
      tx: Transaction,
    ): Promise<void> {
      await Drive.reserve(spaceId, size, quotaBytes, tx);
      await DriveObject.changeArriving(objectKey, { spaceId, size }, tx);
      await DriveObject.keep(objectKey, sha256, tx);
    }

    private static async changeArriving(
      objectKey: string,
      change: Record<string, unknown>,
      tx: Transaction,
    ): Promise<void> {
      const { affectedRows } = await execute(
        tx,
        "UPDATE drive_objects SET ? WHERE object_key = ? AND state = 'arriving'",
        [change, objectKey],
      );
      if (affectedRows === 0) throw uploadExpired();
    }

    /**
     * Gives up arriving objects and returns those that are doomed now. An object that was kept in the meantime stays,
     * even if the answer to that commit was lost.
     */
    static async giveUp(objectKeys: string[]): Promise<DriveObject[]> {
      if (objectKeys.length === 0) return [];
      await DriveObject.update(doomed, { where: { objectKey: objectKeys, state: 'arriving' } });
      return DriveObject.findAll({ where: { objectKey: objectKeys, state: 'doomed' } });
    }

    /** Marks objects that nothing refers to any more. The sweeper removes them and gives their bytes back. */
    static async doom(objectKeys: string[], tx?: Transaction): Promise<void> {
      if (objectKeys.length === 0) return;
      await DriveObject.update(doomed, { where: { objectKey: objectKeys }, transaction: tx });
    }

    /** Gives up arriving objects whose lease has expired. From here on they cannot be kept. */
    static async doomExpired(now: Date): Promise<number> {
      const [count] = await DriveObject.update(doomed, {
        where: { state: 'arriving', leaseExpiresAt: { [Op.lt]: now } },
      });
      return count;
    }

    /** Dooms all objects of a deleted space. */
    static async doomSpace(spaceId: string): Promise<void> {
      await DriveObject.update(doomed, { where: { spaceId } });
    }

    /** The doomed objects that are due, of all spaces; or all doomed objects of one space, due or not. */
    static async doomed(
      limit: number,
      { spaceId, except }: { spaceId?: string | undefined; except: string[] },
    ): Promise<DriveObject[]> {
      const isDue = { leaseExpiresAt: { [Op.or]: [null, { [Op.lt]: new Date() }] } };
      const where = {
        state: 'doomed',
        ...(spaceId === undefined ? isDue : { spaceId }),
        ...(except.length > 0 && { objectKey: { [Op.notIn]: except } }),
      };
      return DriveObject.findAll({ where, limit });
    }

    /**
     * Gives back the bytes of objects that are gone from the store, and schedules a second look for them. Bytes that
     * were sent before the object was given up may reach the store only later.
     */
    static async lookAgain(database: Database, objects: DriveObject[]): Promise<void> {
      const change = { size: 0, leaseExpiresAt: new Date(Date.now() + lateArrivalMs) };
      await DriveObject.release(database, objects, (where, tx) =>
        DriveObject.update(change, { where, transaction: tx }),
      );
    }

    /** Deletes the rows of objects that are gone from the store, and gives their bytes back. */
    static async forget(database: Database, objects: DriveObject[]): Promise<void> {
      await DriveObject.release(database, objects, (where, tx) => DriveObject.destroy({ where, transaction: tx }));
    }

    private static async release(
      database: Database,
      objects: DriveObject[],
      change: (where: { objectKey: string[] }, tx: Transaction) => Promise<unknown>,
    ): Promise<void> {
      const bySpace = Map.groupBy(objects, ({ spaceId }) => spaceId);
      for (const [spaceId, ofSpace] of bySpace) {
        await transaction(database, async (tx) => {
          // Locked first, as everywhere. The drive of a purged space is gone, and its account with it.
          await Drive.wait(spaceId, tx);
          const where = { objectKey: ofSpace.map(({ objectKey }) => objectKey) };
          const rows = await DriveObject.findAll({ where, transaction: tx, lock: tx.LOCK.UPDATE });
          await change(where, tx);
          const bytes = rows.reduce((sum, { size }) => sum + size, 0);
          await Drive.release(spaceId, bytes, tx);
        });
      }
    }
  }

  DriveObject.init(
    {
      objectKey: { type: DataTypes.STRING(64), primaryKey: true },
      spaceId: DataTypes.STRING(40),
      state: DataTypes.STRING(20),
      isComplete: DataTypes.BOOLEAN,
      size: DataTypes.BIGINT.UNSIGNED,
      leaseExpiresAt: DataTypes.DATE(3),
      createdAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'drive_objects', timestamps: false, underscored: true },
  );
  return DriveObject;
}
