import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { appRoutes } from './appRoutes.ts';

export const apps = {
  access,
  routes: [appRoutes],
} as const satisfies Area;
