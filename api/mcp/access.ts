import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: which tools agents have is the owner's to say. */
export const access = {
  listMcpServers: 'viewer',
  addMcpServer: 'owner',
  checkMcpServer: 'owner',
  removeMcpServer: 'owner',
} as const satisfies AccessRows;
