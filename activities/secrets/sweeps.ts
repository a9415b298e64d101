import type { SecretStore } from '../../models/secrets/index.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';

export interface SecretDeps {
  secrets: Pick<SecretStore, 'dynamic'>;
}

export function createSecretSweeps({ secrets }: SecretDeps) {
  return {
    /** Expired form secrets. Reads no longer see them; this removes the rows. */
    async purgeExpiredSecrets(): Promise<number> {
      using heartbeat = keepAlive();
      return secrets.dynamic.purgeExpired(new Date(), () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

const secretSweeps = {
  rescue: [],
  upkeep: ['purgeExpiredSecrets'],
} as const satisfies Sweeps<keyof ReturnType<typeof createSecretSweeps>>;

export const secrets = { create: createSecretSweeps, sweeps: secretSweeps };
