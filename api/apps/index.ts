import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { appRoutes } from './appRoutes.ts';
import { deliveryRoutes } from './deliveryRoutes.ts';
import { previewRoutes } from './previewRoutes.ts';
import { runRoutes } from './runRoutes.ts';
import { scheduleRoutes } from './scheduleRoutes.ts';
import { versionRoutes } from './versionRoutes.ts';
import { webhookRoutes } from './webhookRoutes.ts';

/** Who may do what with apps: viewers read, editors make and run them. */
const access = {
  listApps: 'viewer',
  createApp: 'editor',
  getApp: 'viewer',
  removeApp: 'editor',
  listAppVersions: 'viewer',
  getAppVersion: 'viewer',
  approveAppVersion: 'editor',
  refuseAppVersion: 'editor',
  runApp: 'editor',
  setAppComputer: 'editor',
  listRuns: 'viewer',
  getRun: 'viewer',
  readRunLog: 'viewer',
  getRunTimeline: 'viewer',
  cancelRun: 'editor',
  createPreview: 'editor',
  listPreviews: 'viewer',
  deletePreview: 'editor',
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
  deliverToComponent: 'signedOrEditor',
  deliverToComponentByPut: 'signedOrEditor',
  deliverToComponentByPatch: 'signedOrEditor',
  deliverToComponentByDelete: 'signedOrEditor',
  deliverToComponentByGet: 'signedOrEditor',
} as const satisfies AccessRows;

export const apps = {
  access,
  routes: [appRoutes, runRoutes, deliveryRoutes, webhookRoutes, scheduleRoutes, previewRoutes, versionRoutes],
} as const satisfies Area;
