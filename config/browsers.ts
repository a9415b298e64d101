import { z } from 'zod';
import { integer } from './kinds.ts';

export const browserSettings = z.object({
  ATRIUM_BROWSER_PROFILES_PER_SPACE: integer(1, 10_000).default(100),
  ATRIUM_BROWSER_PROFILE_MIB: integer(1, 10_240).default(256),
  ATRIUM_BROWSER_DOWNLOADS: integer(1, 100_000).default(500),
});

/** What is kept of browsers on computers. */
export function browsersConfig(env: z.infer<typeof browserSettings>) {
  return Object.freeze({
    profilesPerSpace: env.ATRIUM_BROWSER_PROFILES_PER_SPACE,
    /** Size of a saved profile: packed, and without its caches. */
    maxProfileBytes: env.ATRIUM_BROWSER_PROFILE_MIB * 1_048_576,
    /** How many files of one session are put into the drive. */
    maxDownloads: env.ATRIUM_BROWSER_DOWNLOADS,
  });
}
