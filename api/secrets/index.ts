import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { dynamicUiRoutes } from './dynamicUiRoutes.ts';
import { secretRoutes } from './routes.ts';

/** Who may do what with a space's secrets. */
const access = {
  listSecrets: 'viewer',
  getSecretsEnv: 'editor',
  setSecret: 'editor',
  deleteSecret: 'editor',
  storeDynamicSecret: 'viewer',
} as const satisfies AccessRows;

export const secrets = {
  access,
  routes: [secretRoutes, dynamicUiRoutes],
} as const satisfies Area;
