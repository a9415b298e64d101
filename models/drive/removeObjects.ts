import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { isHeldForBackup } from '../installation/backupHold.ts';
import type { DriveObject } from './driveObject.ts';
import { driveModels } from './models.ts';
import type { ByteStore } from './uploadSession.ts';

const objectsAtOnce = 500;
/** A store that refuses so many is left alone until the next time. */
const maxRefused = 2_000;

interface Deps {
  database: Database;
  store: Pick<ByteStore, 'remove'>;
}

/**
 * Permanently removes objects: first from the store, then their rows. If killed in between, it is repeated. What the
 * store refuses to remove keeps its row, for the sweeper. So does for a while, without its bytes, what is not known to
 * have arrived: a request that was given up may reach the store after this one. While a backup is made, all is left to
 * the sweeper.
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
  // A once complete object has no parts left; checking would cost a request each.
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
 * Removes what is doomed, of one space or of all; returns how many objects that were. One that the store refuses to
 * remove holds up no other: it is passed over until the next time. Of a space nothing may be left, so there it throws.
 * Whoever sent an object that never became complete may have been cut off from the store: for that one the sweep of all
 * spaces comes back. It does so too for what a backup that is being made may still have to copy.
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
    throw new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The object store does not remove all objects.');
  }
  return { removed, refused: refused.length };
}
