import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { isHeldForBackup } from '../installation/backupHold.ts';
import type { DriveObject } from './driveObject.ts';
import { driveModels } from './models.ts';
import type { ByteStore } from './uploadSession.ts';

const objectsAtOnce = 500;
/** If the store refuses this many, stop until the next run. */
const maxRefused = 2_000;

interface Deps {
  database: Database;
  store: Pick<ByteStore, 'remove'>;
}

/**
 * Permanently removes objects: first from the store, then their rows. If killed in between, the sweeper repeats it. An
 * object that the store refuses to remove keeps its row for the sweeper. An object that is not known to have arrived
 * keeps its row for a while too, without its bytes, because an abandoned request may reach the store after this
 * removal. While a backup is made, everything is left to the sweeper.
 */
export async function removeObjects(
  deps: Deps,
  objects: readonly DriveObject[],
  arrived: ReadonlySet<string> = new Set(),
): Promise<void> {
  if (objects.length === 0 || (await isHeldForBackup(deps.database))) return;
  const { DriveObject } = driveModels(deps.database);
  const { gone } = await removeFromStore(deps, objects);
  const isOver = ({ isComplete, objectKey }: DriveObject) => isComplete || arrived.has(objectKey);
  await DriveObject.forget(deps.database, gone.filter(isOver));
  await DriveObject.lookAgain(
    deps.database,
    gone.filter((object) => !isOver(object)),
  );
}

async function removeFromStore(
  { store }: Deps,
  objects: readonly DriveObject[],
): Promise<{ gone: DriveObject[]; refused: string[] }> {
  // An object that was complete has no loose parts. Checking for parts costs a request each.
  const [complete, arriving] = [
    objects.filter((object) => object.isComplete),
    objects.filter((object) => !object.isComplete),
  ];
  const keysOf = (some: readonly DriveObject[]) => some.map(({ objectKey }) => objectKey);
  const refused = [
    ...(await store.remove(keysOf(complete), { alsoParts: false })),
    ...(await store.remove(keysOf(arriving), { alsoParts: true })),
  ];
  return { gone: objects.filter(({ objectKey }) => !refused.includes(objectKey)), refused };
}

/**
 * Removes the doomed objects of one space, or of all. An object that the store refuses to remove is skipped until the
 * next run and does not block others. With `spaceId` nothing may be left, so refusals throw 503. The writer of an
 * object that never became complete may have been cut off from the store, so the sweep of all spaces looks for that
 * object a second time. While a backup is made, nothing is removed; the sweep comes back later.
 */
export async function removeDoomed(
  deps: Deps,
  options: { spaceId?: string | undefined; onBatch?: () => void } = {},
): Promise<{ removed: number; refused: number }> {
  const { DriveObject } = driveModels(deps.database);
  const { spaceId } = options;
  const isLast = (object: DriveObject) => object.isComplete || object.leaseExpiresAt !== null || spaceId !== undefined;
  const refused: string[] = [];
  let removed = 0;
  while (refused.length < maxRefused) {
    const objects = await DriveObject.doomed(objectsAtOnce, { spaceId, except: refused });
    if (objects.length === 0 || (await isHeldForBackup(deps.database))) break;
    const batch = await removeFromStore(deps, objects);
    await DriveObject.forget(deps.database, batch.gone.filter(isLast));
    await DriveObject.lookAgain(
      deps.database,
      batch.gone.filter((object) => !isLast(object)),
    );
    refused.push(...batch.refused);
    removed += batch.gone.length;
    options.onBatch?.();
  }
  if (spaceId !== undefined && refused.length > 0) {
    throw new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The object store did not remove all objects.');
  }
  return { removed, refused: refused.length };
}
