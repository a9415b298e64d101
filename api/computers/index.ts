import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { lifeRoutes } from './lifeRoutes.ts';
import { computerRoutes } from './routes.ts';
import { computerSecretRoutes } from './secretRoutes.ts';

export const computers = {
  access,
  routes: [computerRoutes, lifeRoutes, computerSecretRoutes],
} as const satisfies Area;
