import type { SecretStore } from '../../models/secrets/index.ts';
import { keepAlive } from '../keepAlive.ts';

export interface SecretDeps {
  secrets: Pick<SecretStore, 'dynamic'>;
}

export function createSecretSweeps({ secrets }: SecretDeps) {
  return {
    /**
     * What people typed into a form and its time is over. Reads have not seen it since; this takes it out of the table.
     */
    async purgeExpiredSecrets(): Promise<number> {
      using _heartbeat = keepAlive();
      return secrets.dynamic.purgeExpired(new Date());
    },
  };
}

export const secretSweeps = ['purgeExpiredSecrets'] as const satisfies readonly (keyof ReturnType<
  typeof createSecretSweeps
>)[];
