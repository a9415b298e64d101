import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: notifications go to the caller's own devices. */
export const access = {
  getPushKey: 'signedIn',
  listPushSubscriptions: 'signedIn',
  addPushSubscription: 'signedIn',
  removePushSubscription: 'self',
} as const satisfies AccessRows;
