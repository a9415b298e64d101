import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { cloneRoutes } from './cloneRoutes.ts';
import { gitCredentialRoutes } from './credentialRoutes.ts';

export const git = {
  access,
  routes: [gitCredentialRoutes, cloneRoutes],
} as const satisfies Area;
