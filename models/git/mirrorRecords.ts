import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { leaseMs } from '../drive/driveObject.ts';
import { driveModels } from '../drive/models.ts';
import { removeObjects } from '../drive/removeObjects.ts';
import type { ByteStore } from '../drive/uploadSession.ts';
import { lockRepository, type RepositoryFilter } from './repository.ts';

interface Ref {
  spaceId: string;
  itemId: string;
}

/** The state of all refs at one version. */
export interface SavedManifest {
  head: string;
  refs: Record<string, string>;
  shallow: string[];
  filter: RepositoryFilter | null;
}

interface Bundle {
  /** The version of the mirror after this bundle. */
  version: number;
  objectKey: string;
  bytes: number;
}

interface SavedState {
  version: number;
  manifest: SavedManifest;
}

type NextState = SavedState & { bundle: (Bundle & { sha256: Buffer }) | null; replacesAll: boolean };

/**
 * The saved states of repositories. Bundles are ordinary objects of the drive: they count against the space's quota,
 * and are removed from the store when no row refers to them.
 */
export function createMirrorRecords(deps: {
  database: Database;
  store: Pick<ByteStore, 'remove'>;
  quotaBytes: number;
}) {
  const { database, store, quotaBytes } = deps;
  const { Drive, DriveObject } = driveModels(database);

  async function removeDoomedOf(objectKeys: string[]): Promise<void> {
    const objects = await DriveObject.findAll({ where: { objectKey: objectKeys, state: 'doomed' } });
    await removeObjects({ database, store }, objects);
  }

  /** Removes a stored bundle unless its save was committed. The answer to that save may have been lost. */
  async function giveUp(objectKey: string): Promise<void> {
    const left = await DriveObject.giveUp([objectKey]);
    await removeObjects({ database, store }, left);
    if (left.length > 0 || (await DriveObject.findByPk(objectKey)) !== null) return;
    // Its row went with its space during the upload, so no sweep knows of these bytes.
    await store.remove([objectKey], { alsoParts: true });
  }

  return {
    /** Undefined before the first save. */
    async current({ itemId }: Ref): Promise<(SavedState & { bundles: Bundle[] }) | undefined> {
      const sql = `SELECT version, object_key, bytes, manifest FROM git_bundles WHERE item_id = ?
        ORDER BY version`;
      const saved = await select<{
        version: number;
        objectKey: string | null;
        bytes: number | string;
        manifest: string | null;
      }>(database.pool, sql, [itemId]);
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

    /**
     * Notes an object before its first byte is sent, and counts it against the quota: throws 413 `QUOTA_EXCEEDED`. Its
     * lease is renewed until disposal, which removes the object unless it is saved. A bundle that replaces all others
     * may use their room, because they go as soon as it is saved.
     */
    async plan(ref: Ref, { objectKey, bytes }: Bundle, how: { replacesAll: boolean }): Promise<AsyncDisposable> {
      const freedBytes = how.replacesAll && quotaBytes > 0 ? await savedBytesOf(database, ref) : 0;
      const { spaceId } = ref;
      await DriveObject.begin(database, { objectKey, spaceId, bytes, quotaBytes: quotaBytes + freedBytes });
      // A lease lasts for five renewals, so a single one may fail.
      const renew = () => void DriveObject.renewLeases([objectKey]).catch(() => undefined);
      const renewal = setInterval(renew, leaseMs / 5);
      return {
        async [Symbol.asyncDispose]() {
          clearInterval(renewal);
          // If the store or the database is unreachable, the sweeper finds the row, at the latest when its lease ends.
          await giveUp(objectKey).catch(() => undefined);
        },
      };
    },

    async room({ spaceId }: Ref): Promise<number> {
      if (quotaBytes === 0) return Number.POSITIVE_INFINITY;
      return Math.max(0, quotaBytes - (await Drive.usedBytesOf(spaceId)));
    },

    /**
     * Makes a state current if the state before it is current, else returns false. Its bundle is planned and stored. A
     * repetition succeeds: the answer to the first commit may have been lost. The replaced bundles give their room back
     * at once, or at the next sweep.
     */
    async save(ref: Ref, next: NextState): Promise<boolean> {
      const { isSaved, doomed } = await transaction(database, (tx) => saveState(tx, ref, next));
      if (doomed.length > 0) await removeDoomedOf(doomed).catch(() => undefined);
      return isSaved;
    },
  };
}

export type MirrorRecords = ReturnType<typeof createMirrorRecords>;

async function saveState(
  tx: Transaction,
  { spaceId, itemId }: Ref,
  { version, manifest, bundle, replacesAll }: NextState,
): Promise<{ isSaved: boolean; doomed: string[] }> {
  const { Drive, DriveObject } = driveModels(tx);
  const objectKey = bundle?.objectKey ?? null;
  const bytes = bundle?.bytes ?? 0;
  // The drive's lock comes first, as everywhere.
  await Drive.lock(spaceId, tx);
  const repository = await lockRepository(tx, itemId);
  const isOutdated = repository === undefined || repository.removedAt !== null || repository.version !== version - 1;
  if (isOutdated) {
    const isIt = repository?.version === version && objectKey !== null;
    return { isSaved: isIt && (await isBundleOf(tx, { itemId, version, objectKey })), doomed: [] };
  }
  if (bundle !== null) await DriveObject.keep(bundle.objectKey, bundle.sha256, tx);
  let doomed: string[] = [];
  if (replacesAll) {
    const sql = 'SELECT object_key FROM git_bundles WHERE item_id = ? AND object_key IS NOT NULL';
    const before = await select<{ objectKey: string }>(tx, sql, [itemId]);
    doomed = before.map((old) => old.objectKey);
    await DriveObject.doom(doomed, tx);
    await execute(tx, 'DELETE FROM git_bundles WHERE item_id = ?', [itemId]);
  } else {
    // A row without a bundle only records refs, so the next state replaces it.
    await execute(tx, 'DELETE FROM git_bundles WHERE item_id = ? AND object_key IS NULL', [itemId]);
    await execute(tx, 'UPDATE git_bundles SET manifest = NULL WHERE item_id = ?', [itemId]);
  }
  const row = { itemId, version, spaceId, objectKey, bytes };
  await insert(tx, 'git_bundles', { ...row, manifest, createdAt: new Date() });
  await execute(tx, 'UPDATE git_repositories SET version = ? WHERE item_id = ?', [version, itemId]);
  return { isSaved: true, doomed };
}

/** How many bytes the bundles of a repository use. */
async function savedBytesOf({ pool }: Database, { itemId }: Ref): Promise<number> {
  const sql = 'SELECT COALESCE(SUM(bytes), 0) AS bytes FROM git_bundles WHERE item_id = ?';
  const rows = await select(pool, sql, [itemId]);
  return Number(rows[0]?.bytes ?? 0);
}

async function isBundleOf(
  tx: Transaction,
  { itemId, version, objectKey }: { itemId: string; version: number; objectKey: string },
): Promise<boolean> {
  const sql = 'SELECT 1 FROM git_bundles WHERE item_id = ? AND version = ? AND object_key = ?';
  return (await select(tx, sql, [itemId, version, objectKey])).length > 0;
}
