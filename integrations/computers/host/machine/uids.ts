import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDurablySync } from '../../../../disk/durable.ts';
import { usersOfSystem } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';

/**
 * The uids of all hosts on this machine, so that two installations never share one. Each file is named after a taken
 * uid, and contains the folder of the computer that has it.
 */
const registry = '/var/lib/atrium/computer-uids';
/** Above the uids that distributions and container engines assign. */
export const usualFirstUid = 1_900_000_000;
/** Ranges end below 2^31, since some programs take larger uids for negative. */
const rangesOfUids = { first: 2_000_000_000, count: 2_250, step: usersOfSystem };

/** The uids of computers, for a host that is root. */
export interface Uids {
  /** One of the uids, for trials. */
  first: number;
  /** Takes a free uid, if possible the preferred one. */
  take(computerDir: string, preferred?: number): number;
  free(uid: number): void;
}

/** The first uids of ranges, each for a computer with a root file system of its own. */
export const openRanges = () => openUids(rangesOfUids);

/** Undefined if this process is root but may not give files to other users, as in some containers. */
export function openUids({
  first = usualFirstUid,
  count = 100_000,
  step = 1,
  folder = registry,
} = {}): Uids | undefined {
  if (!canGiveTo(first)) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  freeAbandoned(folder);
  const end = first + count * step;
  let next = first;
  // Only one process can create the file.
  const claim = (uid: number, computerDir: string) => {
    const file = join(folder, String(uid));
    return !existsSync(file) && createDurablySync(file, computerDir);
  };
  return {
    first,
    take(computerDir, preferred = 0) {
      if (preferred >= first && preferred < end && claim(preferred, computerDir)) return preferred;
      for (let tries = 0; tries < count; tries += 1) {
        const uid = next;
        next = uid + step >= end ? first : uid + step;
        if (claim(uid, computerDir)) return uid;
      }
      throw new Error('All uids for computers are taken.');
    },
    free(uid) {
      rmSync(join(folder, String(uid)), { force: true });
    },
  };
}

/**
 * Frees the uids of computers whose folders were removed by hand. Waits a day, because a folder may not be made yet.
 */
function freeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > 24 * 3_600_000 && !existsSync(ifThere(() => readFileSync(file, 'utf8')) ?? '/'))
      rmSync(file, { force: true });
  }
}

function canGiveTo(uid: number): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-uid-'));
  try {
    chownSync(folder, uid, uid);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(folder);
  }
}
