import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../base/errors.ts';
import { LeftOut } from '../../integrations/databases/dump/leftOut.ts';
import { RestoreRefused } from '../../integrations/databases/errors.ts';
import type { Fill } from '../../integrations/databases/types.ts';
import { type Alignment, beginFill } from '../../models/databases/alignment.ts';
import { findBackup } from '../../models/databases/backupRows.ts';
import { namesOf } from '../../models/databases/names.ts';
import type { DatabaseDeps } from './deps.ts';

/** The content of a database that is made from a backup, else undefined. */
export async function fillOf(
  { config, database, storage }: Pick<DatabaseDeps, 'config' | 'database' | 'storage'>,
  aligned: Alignment,
  signal: AbortSignal,
): Promise<Fill | undefined> {
  const { restores, state, accounts } = aligned;
  if (restores === null || state !== 'living') return undefined;
  const objectKey = (await findBackup(database, restores))?.objectKey;
  const own = accounts.find(({ isOwn }) => isOwn);
  if (!objectKey || own === undefined) throw new RestoreRefused('The backup no longer exists.');
  return {
    user: own.serverUser,
    signal,
    leftOut: new LeftOut(),
    begin: () => beginFill(database, aligned, namesOf(config.installation).database),
    async read(take) {
      const zipped = await storage.read(objectKey).catch(absent);
      await pipeline(zipped, createGunzip(), (bytes: AsyncIterable<Buffer>) => take(bytes), { signal }).catch(refused);
    },
  };
}

function absent(error: unknown): never {
  const isAbsent = error instanceof DomainError && error.kind !== 'unavailable';
  throw isAbsent ? new RestoreRefused('The object store no longer has this backup.') : error;
}

/** Content that differs from what was written stays broken. */
function refused(error: unknown): never {
  const { code } = error as { code?: unknown };
  const isBroken = error instanceof SyntaxError || code === 'CONTENT_DAMAGED' || String(code).startsWith('Z_');
  throw isBroken ? new RestoreRefused('The backup is damaged.') : error;
}
