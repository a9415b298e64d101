import type { EgressRules } from '../../models/egress/egressRules.ts';
import { keepAlive } from '../keepAlive.ts';

export interface EgressDeps {
  egressRules: EgressRules;
}

export function createEgressSweeps({ egressRules }: EgressDeps) {
  return {
    /** Egress log entries past their retention. */
    async purgeEgressLog(): Promise<number> {
      using _heartbeat = keepAlive();
      return egressRules.purge(new Date());
    },
  };
}

export const egressSweeps = ['purgeEgressLog'] as const satisfies readonly (keyof ReturnType<
  typeof createEgressSweeps
>)[];
