import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { desktopLinkRoutes } from './linkRoutes.ts';
import { desktopRecordingRoutes } from './recordingRoutes.ts';
import { desktopRoutes } from './routes.ts';
import { desktopHosts } from './view/hosts.ts';

export const desktops = {
  access,
  routes: [desktopRoutes, desktopLinkRoutes, desktopRecordingRoutes],
  hosts: [desktopHosts],
} as const satisfies Area;
