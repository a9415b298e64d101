import { restlessComputers } from '../../models/computers/computer.ts';
import { forgetSilentHosts } from '../../models/computers/removedHosts.ts';
import { type Sweeps, sweepActors } from '../sweepEach.ts';
import type { ComputerDeps } from './deps.ts';

export function createComputerSweeps(deps: ComputerDeps) {
  const { database, workflows } = deps;
  return {
    /** Computers that run or have an order. */
    sweepComputers: sweepActors(deps, {
      rows: restlessComputers,
      tell: workflows.startComputer,
      running: workflows.runningComputers,
      needsNoWord: ({ wish }) => wish === null,
    }),

    /** Forgets silent hosts without computers. Returns how many. */
    forgetSilentHosts: (): Promise<number> => forgetSilentHosts(database, new Date()),
  };
}

export const computerSweeps = {
  rescue: ['sweepComputers'],
  upkeep: ['forgetSilentHosts'],
} as const satisfies Sweeps<keyof ReturnType<typeof createComputerSweeps>>;
