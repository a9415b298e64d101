import { randomBytes } from 'node:crypto';
import { DataTypes, Model, Op, QueryTypes, type Sequelize, type Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insertInstance } from '../database/sql.ts';
import type { DriveModel } from './drive.ts';

/** `arriving` until its owner's row is written, `kept` while it has an owner, `doomed` until it has been removed. */
export type ObjectState = 'arriving' | 'kept' | 'doomed';

/** A writer that is silent for this long is considered dead, and what it has sent is removed. */
export const leaseMs = 5 * 60_000;
/** A request that nobody waits for any more reaches the store within this time, or never. */
const lateArrivalMs = 15 * 60_000;

/** A key that no object has. */
export function newObjectKey(): string {
  return randomBytes(20).toString('hex');
}

/**
 * One object in the object store. Its row is committed before the first byte is sent and deleted after the object is
 * gone, so the store never holds an object without a row, whatever is killed in between.
 */
export type DriveObject = InstanceType<DriveObjectModel>;
export type DriveObjectModel = ReturnType<typeof defineDriveObject>;

export function defineDriveObject(sequelize: Sequelize, Drive: DriveModel) {
  class DriveObject extends Model {
    /** Flat and random: names exist only in the tree. */
    declare objectKey: string;
    declare spaceId: string;
    declare state: ObjectState;
    /** It was kept once, so the store has no loose parts of it. */
    declare isComplete: boolean;
    /** The bytes that the drive has counted for it so far. */
    declare size: number;
    declare leaseExpiresAt: Date | null;
    declare createdAt: Date;

    /** Records an arriving object with its first bytes, or all of them, counted against the quota. */
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

    /** Counts the next bytes of an arriving object against the quota, before they are stored. */
    async reserve(database: Database, bytes: number, quotaBytes: number): Promise<void> {
      await transaction(database, async (tx) => {
        await Drive.reserve(this.spaceId, bytes, quotaBytes, tx);
        await DriveObject.changeArriving(
          this.objectKey,
          { size: this.size + bytes, lease_expires_at: new Date(Date.now() + leaseMs) },
          tx,
        );
      });
      this.size += bytes;
    }

    /** Renews its lease. */
    static async renewLeases(objectKeys: string[]): Promise<void> {
      await DriveObject.update(
        { leaseExpiresAt: new Date(Date.now() + leaseMs) },
        { where: { objectKey: objectKeys, state: 'arriving' } },
      );
    }

    static async extendLease(objectKey: string, until: Date, tx: Transaction): Promise<void> {
      await DriveObject.changeArriving(objectKey, { lease_expires_at: until }, tx);
    }

    /** In the transaction that writes what the object belongs to. The object is complete in the store. */
    static async keep(objectKey: string, sha256: Buffer, tx: Transaction): Promise<void> {
      const kept = { state: 'kept', is_complete: true, lease_expires_at: null, sha256, kept_at: new Date() };
      await DriveObject.changeArriving(objectKey, kept, tx);
    }

    /** The same for one of the reserve: its bytes are counted only now. Throws 413 `QUOTA_EXCEEDED`. */
    static async keepReserved(
      objectKey: string,
      { spaceId, size, sha256, quotaBytes }: { spaceId: string; size: number; sha256: Buffer; quotaBytes: number },
      tx: Transaction,
    ): Promise<void> {
      await Drive.reserve(spaceId, size, quotaBytes, tx);
      await DriveObject.changeArriving(objectKey, { space_id: spaceId, size }, tx);
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
      if (affectedRows === 0)
        throw new DomainError('gone', 'UPLOAD_EXPIRED', 'The upload was given up. Begin it again.');
    }

    /**
     * Gives up arriving objects, and returns those given up. One that has been kept in the meantime stays, even where
     * the answer to that commit was lost.
     */
    static async giveUp(objectKeys: string[]): Promise<DriveObject[]> {
      if (objectKeys.length === 0) return [];
      await DriveObject.update(
        { state: 'doomed', leaseExpiresAt: null },
        { where: { objectKey: objectKeys, state: 'arriving' } },
      );
      return DriveObject.findAll({ where: { objectKey: objectKeys, state: 'doomed' } });
    }

    /** Nothing refers to them any more: the sweeper removes them, and gives their bytes back. */
    static async doom(objectKeys: string[], tx?: Transaction): Promise<void> {
      if (objectKeys.length === 0) return;
      await DriveObject.update(
        { state: 'doomed', leaseExpiresAt: null },
        { where: { objectKey: objectKeys }, transaction: tx },
      );
    }

    /** Gives up the arriving objects whose writers are gone. From here on none of them can be kept. */
    static async doomExpired(now: Date): Promise<number> {
      const [count] = await DriveObject.update(
        { state: 'doomed', leaseExpiresAt: null },
        { where: { state: 'arriving', leaseExpiresAt: { [Op.lt]: now } } },
      );
      return count;
    }

    /** Everything of a deleted space. */
    static async doomSpace(spaceId: string): Promise<void> {
      await DriveObject.update({ state: 'doomed', leaseExpiresAt: null }, { where: { spaceId } });
    }

    /** What is to be removed now, of all spaces; or all of a space, whatever is still to be looked at again. */
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
     * Gives back the bytes of objects that are gone from the store, and has it look for them once more later: what was
     * sent before they were given up may reach the store only then.
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
          // Locked first, as everywhere; a purged space's drive is gone, and its bytes with it.
          await Drive.wait(spaceId, tx);
          const where = { objectKey: ofSpace.map(({ objectKey }) => objectKey) };
          const rows = await DriveObject.findAll({ where, transaction: tx, lock: tx.LOCK.UPDATE });
          await change(where, tx);
          const bytes = rows.reduce((sum, { size }) => sum + size, 0);
          await Drive.release(spaceId, bytes, tx);
        });
      }
    }

    /** What the drive's account must say. */
    static async sumOfSizes(spaceId: string): Promise<number> {
      const [row] = await sequelize.query<{ bytes: number | string }>(
        'SELECT COALESCE(SUM(size), 0) AS bytes FROM drive_objects WHERE space_id = ?',
        { replacements: [spaceId], type: QueryTypes.SELECT },
      );
      return Number(row?.bytes ?? 0);
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
