import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LaunchConfig } from '../../config/launch.ts';
import { type CheckResult, ok, wrong } from './check.ts';

const mebibyte = 1_048_576;
/** An empty database and its logs take 200 MiB, and a server that finds no room does not say so in these words. */
const forPartsMiB = 512;
const forCachesMiB = 64;

/** Whether there is room where data go: for the parts that are kept here, or else for caches alone. */
export async function checkDisk({ dataDir, need }: Pick<LaunchConfig, 'dataDir' | 'need'>): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(existing(dataDir));
  const freeMiB = Math.floor((bavail * bsize) / mebibyte);
  const neededMiB = Object.values(need).some((isHere) => isHere) ? forPartsMiB : forCachesMiB;
  if (freeMiB >= neededMiB) return ok(`${freeMiB} MiB free for ${dataDir}`);
  return wrong(
    `${freeMiB} MiB free for ${dataDir}, which needs ${neededMiB}: make room, or set ATRIUM_DATA_DIR to another disk`,
  );
}

/** The folder, or the first one above it that is there already. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}
