import type { EgressRules } from '../../models/egress/egressRules.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';

export interface EgressDeps {
  egressRules: EgressRules;
}

export function createEgressSweeps({ egressRules }: EgressDeps) {
  return {
    /** Egress log entries past their retention. */
    async purgeEgressLog(): Promise<number> {
      using heartbeat = keepAlive();
      return egressRules.purge(new Date(), undefined, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

const egressSweeps = {
  rescue: [],
  upkeep: ['purgeEgressLog'],
} as const satisfies Sweeps<keyof ReturnType<typeof createEgressSweeps>>;

export const egress = { create: createEgressSweeps, sweeps: egressSweeps };
