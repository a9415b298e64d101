import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { changeRoutes } from './changeRoutes.ts';
import { cloneRoutes } from './cloneRoutes.ts';
import { gitCredentialRoutes } from './credentialRoutes.ts';
import { treeRoutes } from './treeRoutes.ts';

export const git = {
  access,
  routes: [gitCredentialRoutes, cloneRoutes, treeRoutes, changeRoutes],
} as const satisfies Area;
