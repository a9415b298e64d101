import type { ComputerSecrets } from '../../models/computers/computerSecrets.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';
import { keepAlive } from '../keepAlive.ts';

export interface EgressDeps {
  egressRules: EgressRules;
  computerSecrets: ComputerSecrets;
}

export function createEgressSweeps({ egressRules, computerSecrets }: EgressDeps) {
  return {
    /** Egress log entries past their retention. */
    async purgeEgressLog(): Promise<number> {
      using _heartbeat = keepAlive();
      return egressRules.purge(new Date());
    },

    /** What deleted computers had as placeholders. */
    async purgeComputerSecrets(): Promise<number> {
      using _heartbeat = keepAlive();
      return computerSecrets.purge();
    },
  };
}

export const egressSweeps = ['purgeEgressLog', 'purgeComputerSecrets'] as const satisfies readonly (keyof ReturnType<
  typeof createEgressSweeps
>)[];
