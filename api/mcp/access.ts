import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: the owner decides which tools agents have. */
export const access = {
  listMcpServers: 'viewer',
  addMcpServer: 'owner',
  checkMcpServer: 'owner',
  removeMcpServer: 'owner',
} as const satisfies AccessRows;
