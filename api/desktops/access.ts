import type { AccessRows } from '../frame/auth/access.ts';

/** Viewers look at desktops, and editors use them. */
export const access = {
  listDesktopSessions: 'viewer',
  createDesktopSession: 'editor',
  getDesktopSession: 'viewer',
  deleteDesktopSession: 'editor',
  resizeDesktopSession: 'editor',
  getDesktopScreenshot: 'viewer',
  createDesktopLink: 'editor',
  deleteDesktopLink: 'editor',
  controlDesktop: 'editor',
  listDesktopRecordings: 'viewer',
  createDesktopRecording: 'editor',
  getDesktopRecording: 'viewer',
  deleteDesktopRecording: 'editor',
  stopDesktopRecording: 'editor',
  saveDesktopRecording: 'editor',
} as const satisfies AccessRows;
