import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { operationRoutes } from './routes.ts';

export const operations = {
  access,
  routes: [operationRoutes],
} as const satisfies Area;
