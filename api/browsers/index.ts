import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { browserProfileRoutes } from './profileRoutes.ts';
import { browserSessionRoutes } from './sessionRoutes.ts';
import { browserTabRoutes } from './tabRoutes.ts';

export const browsers = {
  access,
  routes: [browserProfileRoutes, browserSessionRoutes, browserTabRoutes],
} as const satisfies Area;
