import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with computers: viewers look, editors use them. */
export const access = {
  listComputers: 'viewer',
  createComputer: 'editor',
  getComputerStatus: 'viewer',
  getComputer: 'viewer',
  updateComputer: 'editor',
} as const satisfies AccessRows;
