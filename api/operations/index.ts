import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { operationRoutes } from './routes.ts';

/** Who may do what: an operation is its caller's own. */
const access = {
  getOperation: 'self',
  cancelOperation: 'self',
} as const satisfies AccessRows;

export const operations = {
  access,
  routes: [operationRoutes],
} as const satisfies Area;
