import type { Database } from '../database.ts';
import { leaseMs, newObjectKey } from '../drive/driveObject.ts';
import { driveModels } from '../drive/models.ts';
import { removeObjects } from '../drive/removeObjects.ts';
import type { ByteStore } from '../drive/uploadSession.ts';

/** A log on its way to the store. Disposing of it gives it up, unless its run has kept it. */
export interface ArrivingLog extends AsyncDisposable {
  objectKey: string;
  /** Counts bytes against the space's quota, before they are stored. Throws 413 `QUOTA_EXCEEDED`. */
  reserve(bytes: number): Promise<void>;
}

/** Notes a log before its first byte is sent: the store never holds what no row tells of. */
export async function beginLog(
  deps: { database: Database; store: Pick<ByteStore, 'remove'>; quotaBytes: number },
  spaceId: string,
): Promise<ArrivingLog> {
  const { database, store, quotaBytes } = deps;
  const { DriveObject } = driveModels(database);
  const objectKey = newObjectKey();
  const object = await DriveObject.begin(database, { objectKey, spaceId, bytes: 0, quotaBytes });
  const renew = () => void DriveObject.renewLeases([objectKey]).catch(() => undefined);
  const renewal = setInterval(renew, leaseMs / 5);
  return {
    objectKey,
    reserve: (bytes) => object.reserve(database, bytes, quotaBytes),
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      // Where the store or the database is away, the sweeper finds the row, at once or when its lease has run out.
      const left = await DriveObject.giveUp([objectKey]).catch(() => []);
      await removeObjects({ database, store }, left).catch(() => undefined);
    },
  };
}
