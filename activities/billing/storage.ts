import { QueryTypes } from 'sequelize';
import { chargeStorageDay } from '../../models/billing/usage.ts';
import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';

const spacesPerRead = 500;
const dayMs = 86_400_000;

/** What storage costs by the day. */
export function createStorageMetering({ database, config: { billing } }: BillingDeps) {
  return {
    /** Books yesterday's storage where it has a price, once for each space. Returns for how many. */
    async meterStorage(): Promise<number> {
      using heartbeat = keepAlive();
      if (billing.storageCreditsPerGibDay === 0) return 0;
      const day = new Date(Date.now() - dayMs).toISOString().slice(0, 10);
      let booked = 0;
      for (let after = ''; ; ) {
        heartbeat.cancelled.throwIfAborted();
        const drives = await database.sequelize.query<{ spaceId: string; bytes: number }>(
          `SELECT d.space_id AS spaceId, d.used_bytes AS bytes FROM drives d JOIN spaces s ON s.id = d.space_id
            WHERE d.space_id > ? AND d.used_bytes > 0 AND s.deleted_at IS NULL ORDER BY d.space_id LIMIT ${spacesPerRead}`,
          { replacements: [after], type: QueryTypes.SELECT },
        );
        for (const { spaceId, bytes } of drives) {
          if (await chargeStorageDay(database, billing, { spaceId, day, bytes: Number(bytes) })) booked++;
        }
        if (drives.length < spacesPerRead) return booked;
        after = drives.at(-1)?.spaceId ?? after;
      }
    },
  };
}
