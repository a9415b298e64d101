import type { Database } from '../database/database.ts';
import { leaseMs, newObjectKey } from './driveObject.ts';
import { driveModels } from './models.ts';
import { removeObjects } from './removeObjects.ts';
import type { ByteStore } from './uploadSession.ts';

/** An object on its way to the store, without a file in the tree. Disposing gives it up, unless it was kept. */
export interface ArrivingObject extends AsyncDisposable {
  objectKey: string;
  /** Counts bytes against the space's quota before they are stored. Throws 413 `QUOTA_EXCEEDED`. */
  reserve(bytes: number): Promise<void>;
}

/** Records an object before its first byte is sent, so that the store never holds an object without a row. */
export async function beginObject(
  deps: { database: Database; store: Pick<ByteStore, 'remove'>; quotaBytes: number },
  spaceId: string,
): Promise<ArrivingObject> {
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
      // If the store or the database does not answer, the sweeper finds the row: at once, or when its lease has
      // expired.
      const left = await DriveObject.giveUp([objectKey]).catch(() => []);
      await removeObjects({ database, store }, left).catch(() => undefined);
    },
  };
}
