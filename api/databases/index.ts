import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { backupRoutes } from './backupRoutes.ts';
import { databaseRoutes } from './routes.ts';

/** Who may do what with databases: viewers see that they exist, editors connect to them. */
const access = {
  listDatabases: 'viewer',
  createDatabase: 'editor',
  getDatabase: 'viewer',
  deleteDatabase: 'editor',
  renameDatabase: 'editor',
  restoreDatabase: 'editor',
  purgeDatabase: 'editor',
  getDatabaseConnection: 'editor',
  rotateDatabase: 'editor',
  compactDatabase: 'editor',
  listDatabaseBackups: 'viewer',
  backUpDatabase: 'editor',
  deleteDatabaseBackup: 'editor',
  restoreDatabaseBackup: 'editor',
  connectApp: 'editor',
  disconnectApp: 'editor',
} as const satisfies AccessRows;

export const databases = {
  access,
  routes: [databaseRoutes, backupRoutes],
} as const satisfies Area;
