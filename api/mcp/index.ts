import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { mcpServerRoutes } from './routes.ts';

/** Who may do what: the owner decides which tools agents have. */
const access = {
  listMcpServers: 'viewer',
  addMcpServer: 'owner',
  checkMcpServer: 'owner',
  removeMcpServer: 'owner',
} as const satisfies AccessRows;

export const mcp = {
  access,
  routes: [mcpServerRoutes],
} as const satisfies Area;
