import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { billingEntryRoutes } from './entryRoutes.ts';
import { billingPageRoutes } from './pageRoutes.ts';
import { billingRoutes } from './routes.ts';
import { paymentWebhookRoutes } from './webhookRoutes.ts';

/** Who may do what with a space's credits. A browser that returns from a payment page has no credential. */
const access = {
  checkoutSuccess: 'anyone',
  checkoutCancel: 'anyone',
  developmentPayment: 'anyone',
  chooseDevelopmentPayment: 'anyone',
  receivePaymentEvent: 'signed',
  receiveStripeEvent: 'signed',
  getBilling: 'viewer',
  listBillingEntries: 'viewer',
  exportBillingEntries: 'viewer',
  listCheckouts: 'viewer',
  topUpBilling: 'editor',
  setUpBilling: 'owner',
  setAutoTopUp: 'owner',
  setSpendingCaps: 'owner',
} as const satisfies AccessRows;

export const billing = {
  access,
  routes: [billingPageRoutes, billingEntryRoutes, billingRoutes, paymentWebhookRoutes],
} as const satisfies Area;
