import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { changeRoutes } from './changeRoutes.ts';
import { cloneRoutes } from './cloneRoutes.ts';
import { connectionRoutes } from './connectionRoutes.ts';
import { gitCredentialRoutes } from './credentialRoutes.ts';
import { draftRoutes } from './draftRoutes.ts';
import { hostingRoutes } from './hostingRoutes.ts';
import { treeRoutes } from './treeRoutes.ts';

export const git = {
  access,
  routes: [gitCredentialRoutes, hostingRoutes, connectionRoutes, cloneRoutes, treeRoutes, changeRoutes, draftRoutes],
} as const satisfies Area;
