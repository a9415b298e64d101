import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with computers: viewers look, editors use them. */
export const access = {
  listComputers: 'viewer',
  createComputer: 'editor',
  getComputerStatus: 'viewer',
  getComputer: 'viewer',
  updateComputer: 'editor',
  deleteComputer: 'editor',
  wakeComputer: 'editor',
  stopComputer: 'editor',
  pauseComputer: 'editor',
  recoverComputer: 'editor',
  forkComputer: 'editor',
  listComputerSecrets: 'viewer',
  putComputerSecret: 'editor',
  deleteComputerSecret: 'editor',
  getComputerMetrics: 'viewer',
} as const satisfies AccessRows;
