import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { dynamicUiRoutes } from './dynamicUiRoutes.ts';
import { secretRoutes } from './routes.ts';

export const secrets = {
  access,
  routes: [secretRoutes, dynamicUiRoutes],
} as const satisfies Area;
