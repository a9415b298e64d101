import { forgetSilentHosts } from '../../models/computers/removedHosts.ts';
import { restlessComputers } from '../../models/computers/restless.ts';
import { type Sweeps, sweepActors } from '../sweepEach.ts';
import type { ComputerDeps } from './deps.ts';

export function createComputerSweeps(deps: ComputerDeps) {
  const { database, workflows } = deps;
  return {
    /** Computers that run, or of which something is wanted. */
    sweepComputers: sweepActors(deps, {
      rows: restlessComputers,
      tell: workflows.startComputer,
      running: workflows.runningComputers,
      needsNoWord: ({ wish }) => wish === null,
    }),

    /** Forgets hosts that hold nothing and never came back. Returns how many. */
    forgetSilentHosts: (): Promise<number> => forgetSilentHosts(database, new Date()),
  };
}

export const computerSweeps = {
  rescue: ['sweepComputers'],
  upkeep: ['forgetSilentHosts'],
} as const satisfies Sweeps<keyof ReturnType<typeof createComputerSweeps>>;
