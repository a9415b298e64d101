import { createPurges, type OperationDeps } from './purges.ts';
import { createOperationSweeps, operationSweeps } from './sweeps.ts';

function createOperationActivities(deps: OperationDeps) {
  return { ...createPurges(deps), ...createOperationSweeps(deps) };
}

export const operations = { create: createOperationActivities, sweeps: operationSweeps };
