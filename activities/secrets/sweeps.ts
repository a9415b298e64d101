import type { SecretStore } from '../../models/secrets/index.ts';
import { keepAlive } from '../keepAlive.ts';

export interface SecretDeps {
  secrets: Pick<SecretStore, 'dynamic'>;
}

export function createSecretSweeps({ secrets }: SecretDeps) {
  return {
    /** Expired form secrets. Reads no longer see them; this removes the rows. */
    async purgeExpiredSecrets(): Promise<number> {
      using _heartbeat = keepAlive();
      return secrets.dynamic.purgeExpired(new Date());
    },
  };
}

export const secretSweeps = ['purgeExpiredSecrets'] as const satisfies readonly (keyof ReturnType<
  typeof createSecretSweeps
>)[];
