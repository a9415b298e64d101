import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with apps: viewers look, editors make and run them. */
export const access = {
  listApps: 'viewer',
  createApp: 'editor',
  getApp: 'viewer',
  removeApp: 'editor',
  runApp: 'editor',
  setAppComputer: 'editor',
  listRuns: 'viewer',
  getRun: 'viewer',
  readRunLog: 'viewer',
  cancelRun: 'editor',
} as const satisfies AccessRows;
