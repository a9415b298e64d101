import type { AreaPurge } from '../database/areaPurge.ts';

/** Saved profiles go with the objects of the drive, folders with the computers. */
export const browsersPurge: AreaPurge = {
  ofSpace: ['browser_downloads', 'browser_folders', 'browser_links', 'browser_sessions', 'browser_profiles'],
};
