import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { egressRoutes } from './routes.ts';

/** Who may do what: the owner decides what agents can reach. */
const access = {
  getEgress: 'viewer',
  putEgress: 'owner',
  listEgressLog: 'editor',
} as const satisfies AccessRows;

export const egress = {
  access,
  routes: [egressRoutes],
} as const satisfies Area;
