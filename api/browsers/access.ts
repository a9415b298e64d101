import type { AccessRows } from '../frame/auth/access.ts';

/** Viewers look at browsers, and editors use them. */
export const access = {
  listBrowserProfiles: 'viewer',
  createBrowserProfile: 'editor',
  getBrowserProfile: 'viewer',
  updateBrowserProfile: 'editor',
  deleteBrowserProfile: 'editor',
  createBrowserSession: 'editor',
  listBrowserSessions: 'viewer',
  createTemporaryBrowserSession: 'editor',
  getBrowserSession: 'viewer',
  deleteBrowserSession: 'editor',
  listBrowserTabs: 'viewer',
  openBrowserTab: 'editor',
  updateBrowserTab: 'editor',
  closeBrowserTab: 'editor',
  getBrowserScreenshot: 'viewer',
  getBrowserPdf: 'viewer',
  listBrowserLinks: 'viewer',
  createBrowserLink: 'editor',
  deleteBrowserLink: 'editor',
  attachToBrowser: 'anyone',
  describeBrowserLink: 'anyone',
  describeBrowserLinkSlash: 'anyone',
} as const satisfies AccessRows;
