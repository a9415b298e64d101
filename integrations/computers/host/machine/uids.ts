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
import { ifThere } from '../../system/ifThere.ts';

/**
 * Of all hosts on this machine, so that two installations never share a user. A file is a uid that is taken, with the
 * folder of the computer that has it.
 */
const registry = '/var/lib/atrium/computer-uids';
/** Above what distributions and container engines give out. */
export const usualFirstUid = 1_900_000_000;
const count = 100_000;

/** The uids of computers, where the host is root. */
export interface Uids {
  /** One of them, for a trial. */
  first: number;
  take(computerDir: string): number;
  free(uid: number): void;
}

/** Undefined where this process may not give files to other users, though it is root (some containers). */
export function openUids({ first = usualFirstUid, folder = registry } = {}): Uids | undefined {
  if (!canGiveTo(first)) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  freeAbandoned(folder);
  let next = first;
  return {
    first,
    take(computerDir) {
      for (let tries = 0; tries < count; tries += 1) {
        const uid = next;
        next = uid + 1 >= first + count ? first : uid + 1;
        if (claim(join(folder, String(uid)), computerDir)) return uid;
      }
      throw new Error('Every user for computers is taken.');
    },
    free(uid) {
      rmSync(join(folder, String(uid)), { force: true });
    },
  };
}

/** By creating the file, which only one can. */
function claim(file: string, computerDir: string): boolean {
  return !existsSync(file) && createDurablySync(file, computerDir);
}

/** Frees what belongs to computers whose folders were removed by hand; not at once, for a folder may yet be made. */
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
