import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { appRoutes } from './appRoutes.ts';
import { deliveryRoutes } from './deliveryRoutes.ts';
import { previewRoutes } from './previewRoutes.ts';
import { runRoutes } from './runRoutes.ts';
import { scheduleRoutes } from './scheduleRoutes.ts';
import { versionRoutes } from './versionRoutes.ts';
import { webhookRoutes } from './webhookRoutes.ts';

export const apps = {
  access,
  routes: [appRoutes, runRoutes, deliveryRoutes, webhookRoutes, scheduleRoutes, previewRoutes, versionRoutes],
} as const satisfies Area;
