import { chmodSync, chownSync, existsSync, renameSync, rmSync } from 'node:fs';
import { makeFolderDurably, syncFolder } from '../../../../disk/durable.ts';
import { run } from '../run.ts';
import { type Disks, unfinished } from './disks.ts';
import { roomIn } from './room.ts';

const copyTimeoutMs = 10 * 60_000;
const isGnu = process.platform === 'linux';
const copyOptions = isGnu ? ['--archive', '--reflink=auto'] : ['-a'];
const removeOptions = isGnu ? ['-rf', '--one-file-system'] : ['-rf'];

/** Homes that are ordinary folders. Nothing here keeps their limits: the host’s watcher does, as well as it can. */
export function watchedDisks(homes: string): Disks {
  return {
    kind: 'watched',
    async create(home, { uid }) {
      await makeFolderDurably(home, 0o700);
      chmodSync(home, 0o700);
      if (uid !== undefined) chownSync(home, uid, uid);
    },
    async snapshot(from, to, signal) {
      await this.remove(unfinished(to));
      const copy = [...copyOptions, '--', from, unfinished(to)];
      await run('cp', copy, { timeoutMs: copyTimeoutMs, signal });
    },
    async finish(to, { uid, signal }) {
      await giveAll(unfinished(to), uid, signal);
      await syncAll(unfinished(to));
      renameSync(unfinished(to), to);
      await syncFolder(homes);
    },
    room: () => roomIn(homes),
    async usedBytes(home) {
      // A file that goes while it is counted makes du fail, but it has counted the rest.
      const output = await run('sh', ['-c', 'du -skx -- "$1" || :', 'sh', home]);
      return Number(/^\d+/.exec(output)?.[0] ?? 0) * 1_024;
    },
    async remove(home) {
      if (!existsSync(home)) return;
      // Folders that their owner has closed to itself; and trees deeper than a path may be long, which rmSync refuses.
      if (process.getuid?.() !== 0) await run('chmod', ['-R', 'u+rwx', '--', home], { timeoutMs: copyTimeoutMs });
      await run('rm', [...removeOptions, '--', home], { timeoutMs: copyTimeoutMs });
      rmSync(home, { recursive: true, force: true });
    },
    async close() {},
  };
}

/** Puts on the disk whatever its file system has in memory: for a tree of any size that is one call. */
export async function syncAll(folder: string): Promise<void> {
  await run('sync', isGnu ? ['-f', folder] : [], { timeoutMs: copyTimeoutMs });
}

/** Gives a home and all in it to a user; what links point to stays whose it is. */
export async function giveAll(home: string, uid: number | undefined, signal: AbortSignal): Promise<void> {
  if (uid === undefined) return;
  await run('chown', ['-R', '--no-dereference', `${uid}:${uid}`, '--', home], { timeoutMs: copyTimeoutMs, signal });
}
