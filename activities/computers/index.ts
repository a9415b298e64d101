import type { ComputerDeps } from './deps.ts';
import { createComputerPurges } from './purges.ts';
import { createComputerSteps } from './steps.ts';
import { computerSweeps, createComputerSweeps } from './sweeps.ts';

/** Activities for computers on the main queue. Their hosts have queues of their own. */
export function createComputerActivities(deps: ComputerDeps) {
  return { ...createComputerSteps(deps), ...createComputerSweeps(deps), ...createComputerPurges(deps) };
}

export const computers = { create: createComputerActivities, sweeps: computerSweeps };
