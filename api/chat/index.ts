import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { copyRoutes } from './copyRoutes.ts';
import { chatRoutes } from './routes.ts';
import { chatSettingsRoutes } from './settingsRoutes.ts';
import { shareRoutes } from './shareRoutes.ts';
import { threadRoutes } from './threadRoutes.ts';

export const chat = {
  access,
  routes: [chatRoutes, chatSettingsRoutes, threadRoutes, shareRoutes, copyRoutes],
} as const satisfies Area;
