import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { gitCredentialRoutes } from './credentialRoutes.ts';

export const git = {
  access,
  routes: [gitCredentialRoutes],
} as const satisfies Area;
