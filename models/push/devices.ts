import type { Pool } from 'mysql2/promise';
import { createFreshCache } from '../../base/freshCache.ts';
import { oneFor } from '../../base/oneFor.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** For devices added in other processes. In this process a new device is known at once. */
const maxAgeMs = 1_000;
const cacheOf = oneFor((pool: Pool) => createFreshCache((userId) => readHasDevices(pool, userId), { maxAgeMs }));

/**
 * Whether a user has devices to push to, at most a second old. Cached, since most users have none and each turn asks
 * twice.
 */
export function hasDevices({ pool }: Pick<Database, 'pool'>, userId: string): Promise<boolean> {
  return cacheOf(pool).get(userId);
}

/** Call this when a device was added. */
export function forgetDevices({ pool }: Pick<Database, 'pool'>, userId: string): void {
  cacheOf(pool).forget(userId);
}

async function readHasDevices(pool: Pool, userId: string): Promise<boolean> {
  const rows = await select(pool, 'SELECT 1 FROM push_subscriptions WHERE user_id = ? LIMIT 1', [userId]);
  return rows.length > 0;
}
