import type { Database } from '../../models/database/database.ts';
import { purgeIdentity } from '../../models/identity/purge.ts';
import type { PushStore } from '../../models/push/index.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';

export interface IdentityDeps {
  database: Database;
  push: PushStore;
}

export function createIdentitySweeps({ database, push }: IdentityDeps) {
  return {
    /** Expired codes, sign-ins, invitations and sessions, and the devices of such sessions. */
    async purgeIdentity(): Promise<number> {
      using heartbeat = keepAlive();
      const onBatch = () => heartbeat.cancelled.throwIfAborted();
      await push.subscriptions.purgeRevoked(onBatch);
      return purgeIdentity(database, new Date(), onBatch);
    },
  };
}

const identitySweeps = {
  rescue: [],
  upkeep: ['purgeIdentity'],
} as const satisfies Sweeps<keyof ReturnType<typeof createIdentitySweeps>>;

export const identity = { create: createIdentitySweeps, sweeps: identitySweeps };
