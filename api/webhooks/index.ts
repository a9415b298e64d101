import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { webhookDeliveryRoutes } from './deliveryRoutes.ts';
import { webhookEndpointRoutes } from './endpointRoutes.ts';

export const webhooks = {
  access,
  routes: [webhookEndpointRoutes, webhookDeliveryRoutes],
} as const satisfies Area;
