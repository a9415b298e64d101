import { relative, resolve } from 'node:path';
import type { BackupConfig } from '../../config/backup.ts';
import type { Config } from '../../config/index.ts';
import { BackupError } from '../errors.ts';
import { folderPlace } from '../places/folderPlace.ts';
import type { Place } from '../places/place.ts';
import { s3Place } from '../places/s3Place.ts';
import { openHeader, openOrMakeHeader } from './header.ts';
import { readRecoveryKey } from './recoveryKey.ts';
import { Vault } from './vault.ts';

/**
 * Opens the configured place of backups with the recovery key. Throws {@link BackupError}, also if the place has no
 * backups and `makes` is not set. The caller closes the vault's place.
 */
export async function openVault({ to, keyFile, s3 }: BackupConfig, { makes = false } = {}): Promise<Vault> {
  if (to === undefined) {
    const flag = makes ? '--to' : '--from';
    throw new BackupError(`Where backups are is not said: set ATRIUM_BACKUP_TO, or give ${flag}.`);
  }
  if (keyFile === undefined) {
    throw new BackupError('No recovery key is named: set ATRIUM_BACKUP_KEY_FILE, or give --key-file.');
  }
  const secret = await readRecoveryKey(keyFile);
  const place = openPlace(to, s3);
  try {
    return new Vault(place, await (makes ? openOrMakeHeader : openHeader)(place, secret));
  } catch (error) {
    place.close();
    throw error;
  }
}

/** The place for a path or an `s3://bucket/prefix`. */
function openPlace(to: string, s3: BackupConfig['s3']): Place {
  if (!/^[a-z0-9+.-]+:\/\//i.test(to)) return folderPlace(to);
  const url = URL.parse(to);
  if (url?.protocol === 's3:' && url.hostname !== '') return s3Place(url, s3);
  throw new BackupError(`${to} is no place for backups: give a folder, or s3://BUCKET/PREFIX.`);
}

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
