import { DataTypes, Model, type Sequelize, type Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { execute, instanceOf, select } from '../database/sql.ts';

/** A space's drive as a whole: its lock and its account of bytes. */
export type Drive = InstanceType<DriveModel>;
export type DriveModel = ReturnType<typeof defineDrive>;

export function defineDrive(sequelize: Sequelize) {
  class Drive extends Model {
    declare spaceId: string;
    /** A short id of the drive, which saves space in the word index. */
    declare number: number;
    /** The total size of the drive's objects: kept, arriving, and not yet removed. */
    declare usedBytes: number;

    /**
     * Locks the drive's row and returns it. Every change to the space's tree holds this lock, so changes are
     * serialized: no cycles, duplicate names or wrong counts. A change is a few statements. Bytes are never moved under
     * the lock.
     */
    static async lock(spaceId: string, tx: Transaction): Promise<Drive> {
      const found = await Drive.wait(spaceId, tx);
      if (found !== null) return found;
      await Drive.make(spaceId, tx);
      const made = await Drive.wait(spaceId, tx);
      if (made === null) throw notFound('space');
      return made;
    }

    /** Like `lock`, for a space that is being purged and may have no drive. */
    static async wait(spaceId: string, tx: Transaction): Promise<Drive | null> {
      const [row] = await select(tx, 'SELECT * FROM drives WHERE space_id = ? FOR UPDATE', [spaceId]);
      return row === undefined ? null : instanceOf(Drive, row);
    }

    /** A deleted space gets no new drive, even if an upload ends late. */
    private static async make(spaceId: string, tx: Transaction | null): Promise<void> {
      await sequelize.query(
        `INSERT INTO drives (space_id) SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL
         ON DUPLICATE KEY UPDATE space_id = drives.space_id`,
        { replacements: [spaceId], transaction: tx },
      );
    }

    static async usedBytesOf(spaceId: string): Promise<number> {
      return (await Drive.findOne({ where: { spaceId } }))?.usedBytes ?? 0;
    }

    /** Counts bytes before they are stored. Throws 413 `QUOTA_EXCEEDED`; `quotaBytes` 0 means no quota. */
    static async reserve(spaceId: string, bytes: number, quotaBytes: number, tx: Transaction): Promise<void> {
      const { affectedRows } = await execute(
        tx,
        'UPDATE drives SET used_bytes = used_bytes + ? WHERE space_id = ? AND (? = 0 OR used_bytes + ? <= ?)',
        [bytes, spaceId, quotaBytes, bytes, quotaBytes],
      );
      if (affectedRows > 0) return;
      // The quota is exceeded, the drive does not exist yet, or `bytes` is 0.
      const drive = await Drive.lock(spaceId, tx);
      if (quotaBytes > 0 && drive.usedBytes + bytes > quotaBytes) throw quotaExceeded();
      await drive.update({ usedBytes: drive.usedBytes + bytes }, { transaction: tx });
    }

    static async release(spaceId: string, bytes: number, tx: Transaction): Promise<void> {
      await execute(tx, 'UPDATE drives SET used_bytes = used_bytes - ? WHERE space_id = ?', [bytes, spaceId]);
    }
  }

  Drive.init(
    {
      spaceId: { type: DataTypes.STRING(40), primaryKey: true },
      number: DataTypes.INTEGER.UNSIGNED,
      usedBytes: DataTypes.BIGINT.UNSIGNED,
    },
    { sequelize, tableName: 'drives', timestamps: false, underscored: true },
  );
  return Drive;
}

function quotaExceeded(): DomainError {
  return new DomainError(
    'tooLarge',
    'QUOTA_EXCEEDED',
    'The drive of the space is full. Empty the trash, or ask the operator for a higher quota.',
  );
}
