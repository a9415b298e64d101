import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with a space's credits. A browser that returns from a payment page has no credential. */
export const access = {
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
