import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { renameDurablySync } from '../../../../disk/durable.ts';
import { run } from '../../spawner/spawner.ts';
import { runHere } from '../../system/programs.ts';
import { type Disks, roomInImage, unfinished } from './disks.ts';
import { giveAll, syncAll } from './watched.ts';

interface ImageOptions {
  image: string;
  homes: string;
  /** The size of the image. Undefined: four fifths of the free space. */
  sizeMiB?: number | undefined;
}

/**
 * Keeps homes as subvolumes of one btrfs image, each with a quota: the file system keeps the limits, and a fork is a
 * snapshot. For root only. Says why if there is no image and none can be made. Throws if an existing image cannot be
 * mounted, because every home would seem lost.
 */
export async function btrfsDisks(options: ImageOptions): Promise<Disks | { missing: string }> {
  const { image, homes } = options;
  mkdirSync(homes, { recursive: true, mode: 0o711 });
  if (!isMounted(homes) && existsSync(image)) await mount(image, homes);
  else if (!isMounted(homes)) {
    if (readdirSync(homes).length > 0) return { missing: 'homes were begun as ordinary folders, and stay so' };
    try {
      await makeImage(options);
    } catch (error) {
      rmSync(image, { force: true });
      return { missing: error instanceof Error ? error.message : String(error) };
    }
  }
  chmodSync(homes, 0o711); // every computer's user may enter it, none may list it
  return btrfs(homes, image);
}

async function makeImage({ image, homes, sizeMiB }: ImageOptions): Promise<void> {
  const { bavail, bsize } = statfsSync(homes);
  const freeMiB = Math.floor((bavail * bsize * 0.8) / (1024 * 1024));
  // Never more than is free: an image that cannot grow turns read-only for all.
  const size = Math.min(sizeMiB ?? freeMiB, freeMiB);
  if (size < 256) throw new Error(`only ${freeMiB} MiB are free for homes`);
  const draft = `${image}.new`;
  writeFileSync(draft, '', { mode: 0o600 });
  truncateSync(draft, size * 1024 * 1024);
  try {
    await runHere('mkfs.btrfs', ['--quiet', '--force', draft]);
    await mount(draft, homes);
    await runHere('btrfs', ['quota', 'enable', homes]);
    renameDurablySync(draft, image);
  } catch (error) {
    if (isMounted(homes)) await runHere('umount', [homes]);
    rmSync(draft, { force: true });
    throw error;
  }
}

async function mount(image: string, homes: string): Promise<void> {
  await runHere('mount', ['-t', 'btrfs', '-o', 'loop,nodev,nosuid,noatime,discard=async,commit=10', image, homes]);
}

export function isMounted(folder: string): boolean {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4]);
  return points.includes(folder.replaceAll(' ', '\\040'));
}

function btrfs(homes: string, image: string): Disks {
  const limit = (home: string, limitMiB: number) =>
    run('btrfs', ['qgroup', 'limit', String(limitMiB * 1024 * 1024), home]);
  return {
    kind: 'limited',
    async create(home, { uid, limitMiB }) {
      if (!existsSync(home)) await run('btrfs', ['subvolume', 'create', home]);
      if (limitMiB !== undefined) await limit(home, limitMiB);
      if (uid !== undefined) chownSync(home, uid, uid);
      chmodSync(home, 0o700);
    },
    async snapshot(from, to, signal) {
      await this.remove(unfinished(to));
      await run('btrfs', ['subvolume', 'snapshot', from, unfinished(to)], { signal });
    },
    async finish(to, { uid, limitMiB, signal }) {
      await giveAll(unfinished(to), uid, signal);
      await limit(unfinished(to), limitMiB);
      renameSync(unfinished(to), to);
      await syncAll(homes);
    },
    room: () => roomInImage(homes, image),
    async usedBytes(home) {
      const output = await run('btrfs', ['qgroup', 'show', '--raw', '-f', home]);
      return Number(/^\s*0\/\d+\s+(\d+)/m.exec(output)?.[1] ?? 0);
    },
    async remove(home) {
      if (existsSync(home)) await run('btrfs', ['subvolume', 'delete', home]);
    },
    async close() {
      if (isMounted(homes)) await run('umount', [homes]);
    },
  };
}
