import type { Database } from '../database.ts';
import type { DriveObject } from './driveObject.ts';
import { driveModels } from './models.ts';
import type { ByteStore } from './uploadSession.ts';

const objectsAtOnce = 500;

/** Permanently removes objects: first from the store, then their rows. If killed in between, it is repeated. */
export async function removeObjects(
  deps: { database: Database; store: Pick<ByteStore, 'remove'> },
  objects: readonly DriveObject[],
): Promise<void> {
  // A once complete object has no parts left; checking would cost a request each.
  const [complete, arriving] = [
    objects.filter((object) => object.isComplete),
    objects.filter((object) => !object.isComplete),
  ];
  const keysOf = (some: readonly DriveObject[]) => some.map(({ objectKey }) => objectKey);
  await deps.store.remove(keysOf(complete), { alsoParts: false });
  await deps.store.remove(keysOf(arriving), { alsoParts: true });
  await driveModels(deps.database).DriveObject.forget(deps.database, [...objects]);
}

/** Removes what is doomed, of one space or of all; returns how many objects that were. */
export async function removeDoomed(
  deps: { database: Database; store: Pick<ByteStore, 'remove'> },
  options: { spaceId?: string | undefined; onBatch?: () => void } = {},
): Promise<number> {
  const { DriveObject } = driveModels(deps.database);
  let removed = 0;
  for (;;) {
    const objects = await DriveObject.doomed(objectsAtOnce, options.spaceId);
    if (objects.length === 0) return removed;
    await removeObjects(deps, objects);
    removed += objects.length;
    options.onBatch?.();
  }
}
