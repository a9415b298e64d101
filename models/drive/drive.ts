import { DataTypes, Model, type Sequelize, type Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { execute, instanceOf, select } from '../database/sql.ts';

/** A space's drive as a whole: its lock and its account of bytes. */
export type Drive = InstanceType<DriveModel>;
export type DriveModel = ReturnType<typeof defineDrive>;

export function defineDrive(sequelize: Sequelize) {
  const revisions = new WeakMap<Transaction, Map<string, number>>();

  class Drive extends Model {
    declare spaceId: string;
    /** A short id of the drive, which saves space in the word index. */
    declare number: number;
    /** The total size of the drive's objects: kept, arriving, and not yet removed. */
    declare usedBytes: number;
    /** Counts the changes of the tree. A transaction that changes items gives them the next number. */
    declare revision: number;
    /** The latest revision of an item that is gone from the database. The feed cannot tell of such an item. */
    declare purgedRevision: number;

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

    /**
     * The revision of everything that this transaction changes in the tree. The first call takes the drive's next one.
     * Revisions become visible in their order, because each transaction holds the drive's lock until its commit.
     */
    static async revisionIn(tx: Transaction, spaceId: string): Promise<number> {
      const known = revisions.get(tx)?.get(spaceId);
      if (known !== undefined) return known;
      const sql = 'UPDATE drives SET revision = LAST_INSERT_ID(revision + 1) WHERE space_id = ?';
      return Drive.tookRevision(tx, spaceId, (await execute(tx, sql, [spaceId])).insertId);
    }

    /** Remembers the revision that a statement of this transaction has taken. */
    static tookRevision(tx: Transaction, spaceId: string, revision: number): number {
      const own = revisions.get(tx) ?? new Map<string, number>();
      revisions.set(tx, own.set(spaceId, revision));
      return revision;
    }

    /** Locks the drive, and notes that items up to this revision go from the database. */
    static async forgetUpTo(tx: Transaction, spaceId: string, revision: number): Promise<void> {
      const sql = 'UPDATE drives SET purged_revision = GREATEST(purged_revision, ?) WHERE space_id = ?';
      await execute(tx, sql, [revision, spaceId]);
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
      revision: DataTypes.BIGINT.UNSIGNED,
      purgedRevision: DataTypes.BIGINT.UNSIGNED,
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
