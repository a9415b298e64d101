import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with what a space tells others, and whom. */
export const access = {
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
