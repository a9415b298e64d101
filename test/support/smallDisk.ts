import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A real file system of a few MiB, in memory. */
export interface SmallDisk {
  folder: string;
  /** Leaves no room for a single byte. */
  fill(): void;
  /** Makes the room again that `fill` took. */
  clear(): void;
  [Symbol.dispose](): void;
}

/** Why this machine cannot have one; undefined where it can. */
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
      // What still has a file open on it loses the folder, not the file.
      execFileSync('umount', ['--lazy', folder]);
      rmdirSync(folder);
    },
  };
}
