import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { attachToBrowser } from './cdp/attach.ts';
import { browserLinkRoutes } from './cdp/linkRoutes.ts';
import { browserProfileRoutes } from './profileRoutes.ts';
import { browserSessionRoutes } from './sessionRoutes.ts';
import { browserTabRoutes } from './tabRoutes.ts';

export const browsers = {
  access,
  routes: [browserProfileRoutes, browserSessionRoutes, browserTabRoutes, browserLinkRoutes],
  upgrades: { attachToBrowser },
} as const satisfies Area;
