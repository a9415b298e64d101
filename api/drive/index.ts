import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { driveContentRoutes } from './contentRoutes.ts';
import { driveFindRoutes } from './findRoutes.ts';
import { driveItemRoutes } from './itemRoutes.ts';
import { drivePartRoutes } from './partRoutes.ts';
import { driveRoutes } from './routes.ts';
import { threadFileRoutes } from './threadFileRoutes.ts';
import { driveTrashRoutes } from './trashRoutes.ts';
import { driveUploadRoutes } from './uploadRoutes.ts';

/**
 * Who may do what in the drive. A thread's container belongs to the thread's owner alone, whatever the caller's role.
 * The routes check this with authorizeDrive.ts.
 */
const access = {
  getDrive: 'viewer',
  uploadFiles: 'editor',
  listDriveItems: 'viewer',
  createDriveFolder: 'editor',
  getDriveItem: 'viewer',
  updateDriveItem: 'editor',
  deleteDriveItem: 'editor',
  restoreDriveItem: 'editor',
  getDriveContent: 'viewer',
  getDriveUrl: 'viewer',
  listDriveVersions: 'viewer',
  restoreDriveVersion: 'editor',
  listTrash: 'viewer',
  emptyTrash: 'editor',
  searchDrive: 'viewer',
  getDriveTree: 'viewer',
  createUpload: 'editor',
  getUpload: 'editorsOwn',
  completeUpload: 'editorsOwn',
  abortUpload: 'editorsOwn',
  uploadThreadFiles: 'threadOwner',
  getThreadFileUrl: 'threadOwner',
} as const satisfies AccessRows;

export const drive = {
  access,
  routes: [
    driveRoutes,
    driveUploadRoutes,
    drivePartRoutes,
    driveFindRoutes,
    driveTrashRoutes,
    driveItemRoutes,
    driveContentRoutes,
    threadFileRoutes,
  ],
} as const satisfies Area;
