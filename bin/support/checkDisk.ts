import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LaunchConfig } from '../../config/launch.ts';
import type { Report } from '../../stack/report.ts';
import { type CheckResult, ok, wrong } from './check.ts';
import { CommandFailure } from './failure.ts';

const mebibyte = 1_048_576;
/** Two empty databases and their logs take 470 MiB. Without room, their servers fail with errors that do not say so. */
const forPartsMiB = 512;
const forCachesMiB = 64;

/** An existing installation needs this much to start and to be maintained. */
const forStartMiB = 32;

type Place = Pick<LaunchConfig, 'dataDir' | 'need'>;

/** Whether the disk has enough room: for the parts that run here, or otherwise for caches alone. */
export async function checkDisk(place: Place): Promise<CheckResult> {
  return compare(place, Object.values(place.need).some((isHere) => isHere) ? forPartsMiB : forCachesMiB);
}

/**
 * Runs before a start. Without room, a start would fail with unclear errors of its parts. A nearly full disk does not
 * keep an existing installation from starting, since its operator may want to clean it up.
 */
export async function requireDisk(place: Place, { isNew, report }: { isNew: boolean; report: Report }): Promise<void> {
  const found = await checkDisk(place);
  if (found.state !== 'wrong') return;
  if (isNew) throw new CommandFailure(`There is too little room: ${found.detail}.`);
  const least = await compare(place, forStartMiB);
  if (least.state === 'wrong') throw new CommandFailure(`There is too little room: ${least.detail}.`);
  report(`Warning: there is little room: ${found.detail}.`);
}

async function compare({ dataDir }: Place, neededMiB: number): Promise<CheckResult> {
  // `services` may be a link to another disk.
  const folders = [dataDir, join(dataDir, 'services')].map(existing);
  const free = await Promise.all(folders.map(async (folder) => freeMiBOf(folder)));
  const freeMiB = Math.min(...free);
  if (freeMiB >= neededMiB) return ok(`${freeMiB} MiB free for ${dataDir}`);
  return wrong(
    `${freeMiB} MiB free for ${dataDir}, which needs ${neededMiB}: make room, or set ATRIUM_DATA_DIR to another disk`,
  );
}

async function freeMiBOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return Math.floor((bavail * bsize) / mebibyte);
}

/** The folder, or its nearest parent that exists. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}
