import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { appRoutes } from './appRoutes.ts';
import { deliveryRoutes } from './deliveryRoutes.ts';
import { runRoutes } from './runRoutes.ts';
import { webhookRoutes } from './webhookRoutes.ts';

export const apps = {
  access,
  routes: [appRoutes, runRoutes, deliveryRoutes, webhookRoutes],
} as const satisfies Area;
