import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { egressRoutes } from './routes.ts';

export const egress = {
  access,
  routes: [egressRoutes],
} as const satisfies Area;
