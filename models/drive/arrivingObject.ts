import type { Database } from '../database/database.ts';
import { leaseMs, newObjectKey } from './driveObject.ts';
import { driveModels } from './models.ts';
import { removeObjects } from './removeObjects.ts';
import type { ByteStore } from './uploadSession.ts';

/**
 * Objects that have no owner yet. Their leases are renewed until this is disposed. Then those that nothing keeps are
 * given up and removed. If this process is killed, the sweeper removes them.
 */
export class LeasedObjects implements AsyncDisposable {
  readonly keys: Set<string>;
  /** The subset that the store has confirmed. */
  readonly arrived = new Set<string>();
  private readonly deps: { database: Database; store: Pick<ByteStore, 'remove'> };
  private readonly renewal: NodeJS.Timeout;

  constructor(deps: { database: Database; store: Pick<ByteStore, 'remove'> }, keys: readonly string[] = []) {
    this.deps = deps;
    this.keys = new Set(keys);
    const { DriveObject } = driveModels(deps.database);
    // The next renewal makes up for a failed one. A lease lasts for five renewals.
    const renew = () => void DriveObject.renewLeases([...this.keys]).catch(() => undefined);
    this.renewal = setInterval(renew, leaseMs / 5);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.renewal);
    try {
      const left = await driveModels(this.deps.database).DriveObject.giveUp([...this.keys]);
      await removeObjects(this.deps, left, this.arrived);
    } catch {
      // The store or the database does not answer. The sweeper finds the rows: at once, or when their lease has
      // expired.
    }
  }
}

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
  const { database, quotaBytes } = deps;
  const objectKey = newObjectKey();
  const object = await driveModels(database).DriveObject.begin(database, { objectKey, spaceId, bytes: 0, quotaBytes });
  const reserve = (bytes: number) => object.reserve(database, bytes, quotaBytes);
  return Object.assign(new LeasedObjects(deps, [objectKey]), { objectKey, reserve });
}
