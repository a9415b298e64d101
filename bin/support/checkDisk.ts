import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LaunchConfig } from '../../config/launch.ts';
import type { Report } from '../../stack/report.ts';
import { type CheckResult, ok, wrong } from './check.ts';
import { CommandFailure } from './failure.ts';

const mebibyte = 1_048_576;
/** Two empty databases and their logs take 470 MiB, and a server that finds no room does not say so in these words. */
const forPartsMiB = 512;
const forCachesMiB = 64;

/** What an installation that is there needs to start, and to be looked after. */
const forStartMiB = 32;

type Place = Pick<LaunchConfig, 'dataDir' | 'need'>;

/** Whether there is room where data go: for the parts that are kept here, or else for caches alone. */
export async function checkDisk(place: Place): Promise<CheckResult> {
  return compare(place, Object.values(place.need).some((isHere) => isHere) ? forPartsMiB : forCachesMiB);
}

/**
 * Before a start, which without room fails in words of its parts that lead nowhere. An installation that is there is not
 * kept from starting by a disk that is only nearly full: its operator may want to clear it up.
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
  // The data of the parts may be elsewhere, behind a link.
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

/** The folder, or the first one above it that is there already. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}
