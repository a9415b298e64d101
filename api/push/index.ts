import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { pushRoutes } from './routes.ts';

/** Who may do what. Notifications go only to the caller's own devices. */
const access = {
  getPushKey: 'signedIn',
  listPushSubscriptions: 'signedIn',
  addPushSubscription: 'signedIn',
  removePushSubscription: 'self',
} as const satisfies AccessRows;

export const push = {
  access,
  routes: [pushRoutes],
} as const satisfies Area;
