import { join, resolve } from 'node:path';
import { StackError } from './errors.ts';
import { type HeldLock, tryLock } from './fileLock.mjs';
import { prepareDataDir } from './folders.ts';

/** Lets only one Atrium at a time use a data directory. A lock whose owner was killed is taken over. */
export function lockDataDir(dataDir: string): HeldLock {
  const path = resolve(dataDir);
  prepareDataDir(path);
  const result = tryLock(join(path, 'lock'));
  if (result.release !== undefined) return result;
  throw new StackError(
    `Atrium runs already with ${path} (process ${result.owner.pid}). Stop that one, or set ATRIUM_DATA_DIR to another folder.`,
  );
}
