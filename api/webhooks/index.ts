import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { webhookDeliveryRoutes } from './deliveryRoutes.ts';
import { webhookEndpointRoutes } from './endpointRoutes.ts';

/** Who may do what with a space's webhook endpoints and their deliveries. */
const access = {
  listWebhookEndpoints: 'editor',
  createWebhookEndpoint: 'editor',
  getWebhookEndpoint: 'editor',
  updateWebhookEndpoint: 'editor',
  deleteWebhookEndpoint: 'editor',
  pingWebhookEndpoint: 'editor',
  renewWebhookEndpointSecret: 'editor',
  listWebhookDeliveries: 'editor',
  getWebhookDelivery: 'editor',
  replayWebhookDelivery: 'editor',
} as const satisfies AccessRows;

export const webhooks = {
  access,
  routes: [webhookEndpointRoutes, webhookDeliveryRoutes],
} as const satisfies Area;
