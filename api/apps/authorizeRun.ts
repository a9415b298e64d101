import type { Request } from 'express';
import { asNotFound } from '../../base/errors.ts';
import { getRun, type Run } from '../../models/apps/run.ts';
import { authorizeOperation } from '../frame/auth/authorizeSpace.ts';
import type { RouteDeps } from '../frame/deps.ts';

/** A run, for a caller whose role is enough for the operation; for strangers there is none. */
export async function authorizeRun(deps: RouteDeps, req: Request, runId: string): Promise<Run> {
  const run = await getRun(deps.database, runId);
  await authorizeOperation(deps, req, run.spaceId).catch((error: unknown) => {
    throw asNotFound(error, 'run');
  });
  return run;
}
