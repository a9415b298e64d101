import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { favicon, frontPageRoutes } from './frontPage.ts';
import { docsRoutes, referencePageFiles } from './referenceRoutes.ts';
import { serviceRoutes } from './routes.ts';

/** Who may ask the service about itself. */
const access = {
  getFrontPage: 'anyone',
  getHealth: 'anyone',
  getReadiness: 'anyone',
  getMetrics: 'operator',
  getContractYaml: 'anyone',
  getContractJson: 'anyone',
  getReferencePage: 'anyone',
} as const satisfies AccessRows;

export const service = {
  access,
  routes: [frontPageRoutes, serviceRoutes, docsRoutes],
  files: { '/docs/assets': referencePageFiles, '/favicon.ico': favicon },
} as const satisfies Area;
