import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database.ts';
import { driveModels } from '../drive/models.ts';
import { execute, insert, select } from '../sql.ts';
import { lockRepository, type RepositoryFilter } from './repository.ts';

interface Ref {
  spaceId: string;
  itemId: string;
}

/** Where every ref is, as of one version. */
export interface SavedManifest {
  head: string;
  refs: Record<string, string>;
  shallow: string[];
  filter: RepositoryFilter | null;
}

interface Bundle {
  /** The state that it brings. */
  version: number;
  objectKey: string;
  bytes: number;
}

interface SavedState {
  version: number;
  manifest: SavedManifest;
}

type NextState = SavedState & { bundle: Bundle | null; replacesAll: boolean };

/** A bundle is written within this time, or given up. */
const leaseMs = 2 * 3_600_000;

/**
 * What is saved of repositories. The bundles are objects of the drive like any other: counted against the space's
 * quota, and removed from the store when nothing refers to them.
 */
export function createMirrorRecords(database: Database, { drive }: Pick<Config, 'drive'>) {
  const { DriveObject } = driveModels(database);
  return {
    /** Undefined before the first save. */
    async current({ itemId }: Ref): Promise<(SavedState & { bundles: Bundle[] }) | undefined> {
      const sql = `SELECT version, object_key AS objectKey, bytes, manifest FROM git_bundles WHERE item_id = ?
        ORDER BY version`;
      const [rows] = await database.pool.query<RowDataPacket[]>(sql, [itemId]);
      const saved = rows as {
        version: number;
        objectKey: string | null;
        bytes: number | string;
        manifest: string | null;
      }[];
      const last = saved.at(-1);
      if (last === undefined || last.manifest === null) return undefined;
      return {
        version: last.version,
        manifest: JSON.parse(last.manifest) as SavedManifest,
        bundles: saved.flatMap(({ version, objectKey, bytes }) =>
          objectKey === null ? [] : [{ version, objectKey, bytes: Number(bytes) }],
        ),
      };
    },

    /** Notes an object before the first byte is sent. */
    async plan({ spaceId }: Ref, objectKey: string): Promise<void> {
      await DriveObject.begin(database, { objectKey, spaceId, bytes: 0, quotaBytes: drive.quotaBytes });
      await transaction(database, (tx) => DriveObject.extendLease(objectKey, new Date(Date.now() + leaseMs), tx));
    },

    /**
     * Makes a state the current one if the one before it is; else gives up its bundle and returns false. The same state
     * again is fine: the answer to its commit may have been lost. Throws 413 `QUOTA_EXCEEDED`.
     */
    async save(ref: Ref, next: NextState): Promise<boolean> {
      const isSaved = await transaction(database, (tx) => saveState(tx, ref, next, drive.quotaBytes));
      if (!isSaved && next.bundle !== null) await DriveObject.giveUp([next.bundle.objectKey]);
      return isSaved;
    },
  };
}

export type MirrorRecords = ReturnType<typeof createMirrorRecords>;

async function saveState(
  tx: Transaction,
  { spaceId, itemId }: Ref,
  { version, manifest, bundle, replacesAll }: NextState,
  quotaBytes: number,
): Promise<boolean> {
  const { Drive, DriveObject } = driveModels(tx);
  const objectKey = bundle?.objectKey ?? null;
  const bytes = bundle?.bytes ?? 0;
  // The drive's lock comes first, as everywhere.
  await Drive.reserve(spaceId, bytes, quotaBytes, tx);
  const repository = await lockRepository(tx, itemId);
  const isOutdated = repository === undefined || repository.removedAt !== null || repository.version !== version - 1;
  if (isOutdated) {
    await Drive.release(spaceId, bytes, tx);
    return repository?.version === version && objectKey !== null && isBundleOf(tx, { itemId, version, objectKey });
  }
  if (objectKey !== null) {
    await DriveObject.update({ size: bytes }, { where: { objectKey }, transaction: tx });
    await DriveObject.keep(objectKey, tx);
  }
  if (replacesAll) {
    const sql = 'SELECT object_key AS objectKey FROM git_bundles WHERE item_id = ? AND object_key IS NOT NULL';
    const before = await select<{ objectKey: string }>(tx, sql, [itemId]);
    await DriveObject.doom(
      before.map((old) => old.objectKey),
      tx,
    );
    await execute(tx, 'DELETE FROM git_bundles WHERE item_id = ?', [itemId]);
  } else await execute(tx, 'UPDATE git_bundles SET manifest = NULL WHERE item_id = ?', [itemId]);
  const row = { item_id: itemId, version, space_id: spaceId, object_key: objectKey, bytes };
  await insert(tx, 'git_bundles', { ...row, manifest: JSON.stringify(manifest), created_at: new Date() });
  await execute(tx, 'UPDATE git_repositories SET version = ? WHERE item_id = ?', [version, itemId]);
  return true;
}

async function isBundleOf(
  tx: Transaction,
  { itemId, version, objectKey }: { itemId: string; version: number; objectKey: string },
): Promise<boolean> {
  const sql = 'SELECT 1 FROM git_bundles WHERE item_id = ? AND version = ? AND object_key = ?';
  return (await select(tx, sql, [itemId, version, objectKey])).length > 0;
}
