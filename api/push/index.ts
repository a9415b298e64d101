import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { pushRoutes } from './routes.ts';

export const push = {
  access,
  routes: [pushRoutes],
} as const satisfies Area;
