import { createPurges, type OperationDeps } from './purges.ts';
import { createOperationSweeps } from './sweeps.ts';

export function createOperationActivities(deps: OperationDeps) {
  return { ...createPurges(deps), ...createOperationSweeps(deps) };
}
