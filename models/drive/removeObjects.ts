import type { Database } from '../database.ts';
import type { DriveObject } from './driveObject.ts';
import { driveModels } from './models.ts';
import type { ByteStore } from './uploadSession.ts';

const objectsAtOnce = 500;

interface Deps {
  database: Database;
  store: Pick<ByteStore, 'remove'>;
}

/** Permanently removes objects: first from the store, then their rows. If killed in between, it is repeated. */
export async function removeObjects(deps: Deps, objects: readonly DriveObject[]): Promise<void> {
  await removeFromStore(deps, objects);
  await driveModels(deps.database).DriveObject.forget(deps.database, [...objects]);
}

async function removeFromStore({ store }: Deps, objects: readonly DriveObject[]): Promise<void> {
  // A once complete object has no parts left; checking would cost a request each.
  const [complete, arriving] = [
    objects.filter((object) => object.isComplete),
    objects.filter((object) => !object.isComplete),
  ];
  const keysOf = (some: readonly DriveObject[]) => some.map(({ objectKey }) => objectKey);
  await store.remove(keysOf(complete), { alsoParts: false });
  await store.remove(keysOf(arriving), { alsoParts: true });
}

/**
 * Removes what is doomed, of one space or of all; returns how many objects that were. Whoever sent an object that never
 * became complete may have been cut off from the store: for that one the sweep of all spaces comes back.
 */
export async function removeDoomed(
  deps: Deps,
  options: { spaceId?: string | undefined; onBatch?: () => void } = {},
): Promise<number> {
  const { DriveObject } = driveModels(deps.database);
  let removed = 0;
  for (;;) {
    const objects = await DriveObject.doomed(objectsAtOnce, options.spaceId);
    if (objects.length === 0) return removed;
    const isLast = (object: DriveObject) =>
      object.isComplete || object.leaseExpiresAt !== null || options.spaceId !== undefined;
    await removeFromStore(deps, objects);
    await DriveObject.forget(deps.database, objects.filter(isLast));
    await DriveObject.lookAgain(
      deps.database,
      objects.filter((object) => !isLast(object)),
    );
    removed += objects.length;
    options.onBatch?.();
  }
}
