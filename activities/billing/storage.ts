import { chargeStorageDay, storedBytesAfter } from '../../models/billing/usage.ts';
import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';

const spacesPerRead = 500;
const dayMs = 86_400_000;

/** Books what storage costs per day. */
export function createStorageMetering({ database, config: { billing } }: BillingDeps) {
  return {
    /** Books yesterday's storage if it has a price, once for each space. Returns the number of spaces. */
    async meterStorage(): Promise<number> {
      using heartbeat = keepAlive();
      if (billing.storageCreditsPerGibDay === 0) return 0;
      const day = new Date(Date.now() - dayMs).toISOString().slice(0, 10);
      let booked = 0;
      for (let after = ''; ; ) {
        heartbeat.cancelled.throwIfAborted();
        const drives = await storedBytesAfter(database, after, spacesPerRead);
        for (const { spaceId, bytes } of drives) {
          if (await chargeStorageDay(database, billing, { spaceId, day, bytes })) booked++;
        }
        if (drives.length < spacesPerRead) return booked;
        after = drives.at(-1)?.spaceId ?? after;
      }
    },
  };
}
