import type { DriveDeps } from './deps.ts';
import { createFinishUpload } from './finishUpload.ts';
import { createDrivePurges } from './purges.ts';
import { createDriveSweeps, driveSweeps } from './sweeps.ts';

function createDriveActivities(deps: DriveDeps) {
  return {
    finishUpload: createFinishUpload(deps),
    ...createDrivePurges(deps),
    ...createDriveSweeps(deps),
  };
}

export const drive = { create: createDriveActivities, sweeps: driveSweeps };
