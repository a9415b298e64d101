import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { environmentLogRoutes } from './logRoutes.ts';
import { environmentRoutes } from './routes.ts';

const access = {
  listEnvironments: 'viewer',
  createEnvironment: 'editor',
  getEnvironment: 'viewer',
  updateEnvironment: 'editor',
  deleteEnvironment: 'editor',
  buildEnvironment: 'editor',
  readEnvironmentLog: 'viewer',
  listEnvironmentVersions: 'viewer',
} as const satisfies AccessRows;

export const environments = {
  access,
  routes: [environmentRoutes, environmentLogRoutes],
} as const satisfies Area;
