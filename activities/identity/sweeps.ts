import type { Database } from '../../models/database.ts';
import { purgeIdentity } from '../../models/identity/purge.ts';
import type { PushStore } from '../../models/push/index.ts';
import { keepAlive } from '../keepAlive.ts';

export interface IdentityDeps {
  database: Database;
  push: PushStore;
}

export function createIdentitySweeps({ database, push }: IdentityDeps) {
  return {
    /** Expired codes, sign-ins, invitations and sessions, and the devices of such sessions. */
    async purgeIdentity(): Promise<number> {
      using _heartbeat = keepAlive();
      await push.subscriptions.purgeRevoked();
      return purgeIdentity(database, new Date());
    },
  };
}

export const identitySweeps = ['purgeIdentity'] as const satisfies readonly (keyof ReturnType<
  typeof createIdentitySweeps
>)[];
