import type { BackupConfig } from '../../config/backup.ts';
import { BackupError } from '../errors.ts';
import { folderPlace } from './folderPlace.ts';
import type { Place } from './place.ts';
import { s3Place } from './s3Place.ts';

/** The place at a path or an `s3://bucket/prefix`. */
export function openPlace(to: string, s3: BackupConfig['s3']): Place {
  if (!/^[a-z0-9+.-]+:\/\//i.test(to)) return folderPlace(to);
  const url = URL.parse(to);
  if (url?.protocol === 's3:' && url.hostname !== '') return s3Place(url, s3);
  throw new BackupError(`${to} is no place for backups: give a folder, or s3://BUCKET/PREFIX.`);
}
