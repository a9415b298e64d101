import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { computerRoutes } from './routes.ts';

export const computers = {
  access,
  routes: [computerRoutes],
} as const satisfies Area;
