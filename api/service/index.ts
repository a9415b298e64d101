import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { docsRoutes, referencePageFiles } from './referenceRoutes.ts';
import { serviceRoutes } from './routes.ts';

export const service = {
  access,
  routes: [serviceRoutes, docsRoutes],
  files: { '/docs/assets': referencePageFiles },
} as const satisfies Area;
