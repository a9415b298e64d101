import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A real file system of a few MiB, in memory. */
export interface SmallDisk {
  folder: string;
  /** Leaves no free byte. */
  fill(): void;
  /** Frees the room that `fill` took. */
  clear(): void;
  [Symbol.dispose](): void;
}

/** Why this machine cannot mount a small disk. Undefined if it can. */
export const noSmallDisk =
  process.platform === 'linux' && process.getuid?.() === 0 ? undefined : 'only root on Linux can mount a small disk';

export function mountSmallDisk(mib: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-small-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=755`, 'tmpfs', folder]);
  chmodSync(folder, 0o755);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill() {
      for (let bytes = 1_048_576; bytes >= 1; bytes = Math.floor(bytes / 2)) {
        try {
          for (;;) writeFileSync(ballast, Buffer.alloc(bytes), { flag: 'a' });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    clear: () => rmSync(ballast, { force: true }),
    [Symbol.dispose]() {
      // Processes with open files on it lose the folder, but not the files.
      execFileSync('umount', ['--lazy', folder]);
      rmdirSync(folder);
    },
  };
}
