import { relative, resolve } from 'node:path';
import type { BackupConfig } from '../../config/backup.ts';
import type { Config } from '../../config/index.ts';
import { BackupError } from '../errors.ts';

/** Throws {@link BackupError} for a place that would be lost together with the data. */
export function assertElsewhere({ to, s3 }: BackupConfig, { storage, dataDir }: Config): void {
  if (to === undefined) return; // opening the place reports this
  const own = `s3://${storage.bucket}`;
  if (s3.endpoint === storage.endpoint && (to === own || to.startsWith(`${own}/`))) {
    throw new BackupError(`${to} is in the bucket that is backed up, and would be lost with it. Give another bucket.`);
  }
  if (!to.startsWith('s3:') && !relative(resolve(dataDir), resolve(to)).startsWith('..')) {
    throw new BackupError(`${to} is in the data directory, and would be lost with it. Give a folder elsewhere.`);
  }
}
