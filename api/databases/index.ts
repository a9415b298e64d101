import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { backupRoutes } from './backupRoutes.ts';
import { databaseRoutes } from './routes.ts';

export const databases = {
  access,
  routes: [databaseRoutes, backupRoutes],
} as const satisfies Area;
