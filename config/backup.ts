import { z } from 'zod';
import { webAddress } from './kinds.ts';

export const backupSettings = z.object({
  ATRIUM_BACKUP_TO: z.string().min(1).optional(),
  ATRIUM_BACKUP_KEY_FILE: z.string().min(1).optional(),
  ATRIUM_BACKUP_S3_ENDPOINT: webAddress.optional(),
  ATRIUM_BACKUP_S3_REGION: z.string().min(1).default('us-east-1'),
  ATRIUM_BACKUP_S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  ATRIUM_BACKUP_S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
});

/** Where backups go, and the key that opens them. */
export function backupConfig(env: z.infer<typeof backupSettings>) {
  return Object.freeze({
    /** A folder, or `s3://bucket/prefix`. */
    to: env.ATRIUM_BACKUP_TO,
    keyFile: env.ATRIUM_BACKUP_KEY_FILE,
    /** For a bucket. Without keys, the machine's own role is used. */
    s3: Object.freeze({
      endpoint: env.ATRIUM_BACKUP_S3_ENDPOINT,
      region: env.ATRIUM_BACKUP_S3_REGION,
      accessKeyId: env.ATRIUM_BACKUP_S3_ACCESS_KEY_ID,
      secretAccessKey: env.ATRIUM_BACKUP_S3_SECRET_ACCESS_KEY,
    }),
  });
}

export type BackupConfig = ReturnType<typeof backupConfig>;
