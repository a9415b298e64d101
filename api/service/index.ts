import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { favicon, frontPageRoutes } from './frontPage.ts';
import { docsRoutes, referencePageFiles } from './referenceRoutes.ts';
import { serviceRoutes } from './routes.ts';

export const service = {
  access,
  routes: [frontPageRoutes, serviceRoutes, docsRoutes],
  files: { '/docs/assets': referencePageFiles, '/favicon.ico': favicon },
} as const satisfies Area;
