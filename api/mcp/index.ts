import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { mcpServerRoutes } from './routes.ts';

export const mcp = {
  access,
  routes: [mcpServerRoutes],
} as const satisfies Area;
