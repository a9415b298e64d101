import * as areas from './areas.ts';
import { type PurgeScope, purgeThreads } from './chat/purge.ts';
import type { AreaSchema } from './database/areaSchema.ts';
import { deleteInBatches } from './database/batches.ts';
import type { Database } from './database/database.ts';
import { sharedSchema } from './sharedSchema.ts';

const { identity, ...others } = areas;

/** In the order in which they finish. Identity is the last: it destroys the keys that seal the data of a space. */
export const areaSchemas: readonly AreaSchema[] = [...Object.values(others), sharedSchema, identity];

const ofTurn = areaSchemas.flatMap((area) => area.ofTurn ?? []);
const ofThread = areaSchemas.flatMap((area) => area.ofThread ?? []);
const ofSpace = areaSchemas.flatMap((area) => area.ofSpace ?? []);

/**
 * Removes the rows of a deleted thread, or all of a deleted space but its drive, in batches that lock little. Safe to
 * run again.
 */
export async function purgeRows(database: Database, scope: PurgeScope, onBatch: () => void): Promise<void> {
  await purgeThreads(database, scope, { ofTurn, ofThread }, onBatch);
  if (!('spaceId' in scope)) return;
  for (const table of ofSpace)
    await deleteInBatches(database, `DELETE FROM ${table} WHERE space_id = ? LIMIT ?`, [scope.spaceId], onBatch);
  for (const area of areaSchemas) await area.finish?.(database, scope.spaceId);
}
