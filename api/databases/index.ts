import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { databaseRoutes } from './routes.ts';

export const databases = {
  access,
  routes: [databaseRoutes],
} as const satisfies Area;
