import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { lifeRoutes } from './lifeRoutes.ts';
import { metricsRoutes } from './metricsRoutes.ts';
import { computerRoutes } from './routes.ts';
import { computerSecretRoutes } from './secretRoutes.ts';

export const computers = {
  access,
  routes: [computerRoutes, lifeRoutes, metricsRoutes, computerSecretRoutes],
} as const satisfies Area;
