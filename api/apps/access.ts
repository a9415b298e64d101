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
  getRunTimeline: 'viewer',
  cancelRun: 'editor',
  listDeliveries: 'viewer',
  replayDelivery: 'editor',
  renewAppSecret: 'editor',
  listSchedules: 'viewer',
  pauseSchedule: 'editor',
  resumeSchedule: 'editor',
  deliverToApp: 'signedOrEditor',
  deliverToAppByPut: 'signedOrEditor',
  deliverToAppByPatch: 'signedOrEditor',
  deliverToAppByDelete: 'signedOrEditor',
  deliverToAppByGet: 'signedOrEditor',
} as const satisfies AccessRows;
