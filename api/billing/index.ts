import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { billingEntryRoutes } from './entryRoutes.ts';
import { billingPageRoutes } from './pageRoutes.ts';
import { billingRoutes } from './routes.ts';
import { paymentWebhookRoutes } from './webhookRoutes.ts';

export const billing = {
  access,
  routes: [billingPageRoutes, billingEntryRoutes, billingRoutes, paymentWebhookRoutes],
} as const satisfies Area;
