import { z } from 'zod';
import { integer } from './kinds.ts';

export const driveSettings = z.object({
  ATRIUM_DRIVE_QUOTA_MIB: integer(0, 1_000_000_000).default(51_200),
  ATRIUM_DRIVE_MAX_FILE_MIB: integer(1, 5_120).default(5_120),
  ATRIUM_DRIVE_KEPT_VERSIONS: integer(0, 1_000).default(10),
  ATRIUM_TRASH_RETENTION_DAYS: integer(1, 3_650).default(30),
});

/** Files. */
export function driveConfig(env: z.infer<typeof driveSettings>) {
  return Object.freeze({
    /** Quota of one space. 0 means no quota. */
    quotaBytes: env.ATRIUM_DRIVE_QUOTA_MIB * 1_048_576,
    maxFileBytes: env.ATRIUM_DRIVE_MAX_FILE_MIB * 1_048_576,
    /** How many earlier versions of a file are kept. */
    keptVersions: env.ATRIUM_DRIVE_KEPT_VERSIONS,
    trashRetentionDays: env.ATRIUM_TRASH_RETENTION_DAYS,
  });
}
