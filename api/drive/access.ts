import type { AccessRows } from '../frame/auth/access.ts';

/**
 * Who may do what in the drive. A thread's container belongs to the thread's owner alone, whatever the role: the routes
 * check that with authorizeDrive.ts.
 */
export const access = {
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
