import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { appRoutes } from './appRoutes.ts';
import { runRoutes } from './runRoutes.ts';

export const apps = {
  access,
  routes: [appRoutes, runRoutes],
} as const satisfies Area;
