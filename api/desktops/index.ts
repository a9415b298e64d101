import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { desktopRoutes } from './routes.ts';
import { desktopScreenRoutes } from './screenRoutes.ts';

export const desktops = { access, routes: [desktopRoutes, desktopScreenRoutes] } as const satisfies Area;
