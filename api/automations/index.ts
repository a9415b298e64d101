import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { automationDeliveryRoutes } from './deliveryRoutes.ts';
import { automationRoutes } from './routes.ts';
import { automationRunRoutes } from './runRoutes.ts';

export const automations = {
  access,
  routes: [automationRoutes, automationRunRoutes, automationDeliveryRoutes],
} as const satisfies Area;
