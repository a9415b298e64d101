import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { lookUntil } from '../../../../base/async.ts';
import { renameDurablySync } from '../../../../disk/durable.ts';
import { run } from '../../spawner/spawner.ts';
import { runHere } from '../../system/programs.ts';
import { type Disks, unfinished } from './disks.ts';
import {
  allocate,
  faultOfHomes,
  firstBytes,
  growImage,
  type Image,
  isDiskShort,
  keepersOf,
  mountOf,
  roomInImage,
  shrinkImage,
} from './image.ts';
import { type Counts, keepCounting, removeOldQuotas } from './quotas.ts';
import { giveAll, syncAll } from './watched.ts';

/** How often old quotas are removed. */
const tidyMs = 3_600_000;
/** How long the kernel may take to detach a loop device after its last use. */
const detachMs = 10_000;

/**
 * Keeps homes as subvolumes of one btrfs image, each with a quota: the file system keeps the limits, and a fork is a
 * snapshot. For root only. Says why if there is no image and none can be made. Throws if an existing image cannot be
 * mounted, because every home would seem lost.
 */
export async function btrfsDisks(options: Image): Promise<Disks | { missing: string }> {
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
  return btrfs(options, await keepCounting(homes));
}

async function makeImage(place: Image): Promise<void> {
  const { image, homes } = place;
  const bytes = firstBytes(place);
  if (bytes < 256 * 1_048_576) throw new Error(`only ${Math.floor(bytes / 1_048_576)} MiB may be used for homes`);
  const draft = `${image}.new`;
  writeFileSync(draft, '', { mode: 0o600 });
  // Where the disk itself is btrfs, it must not copy the blocks that it has allocated.
  await runHere('chattr', ['+C', draft]).catch(() => undefined);
  try {
    await allocate(draft, 0, bytes);
    await runHere('mkfs.btrfs', ['--quiet', '--force', '--nodiscard', draft]);
    await mount(draft, homes);
    await runHere('btrfs', ['quota', 'enable', homes]);
    renameDurablySync(draft, image);
  } catch (error) {
    if (isMounted(homes)) await runHere('umount', [homes]);
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Without discards, which would give allocated blocks back to the disk. */
async function mount(image: string, homes: string): Promise<void> {
  await runHere('mount', ['-t', 'btrfs', '-o', 'loop,nodev,nosuid,noatime,nodiscard,commit=10', image, homes]);
}

export const isMounted = (folder: string) => mountOf(folder) !== undefined;

function btrfs(place: Image, counts: Counts): Disks {
  const { homes, image } = place;
  let isFirst = true;
  let tidyAtMs = 0;
  const limit = (home: string, limitMiB: number) =>
    run('btrfs', ['qgroup', 'limit', String(limitMiB * 1024 * 1024), home]);
  return {
    kind: 'limited',
    async create(home, { uid, limitMiB, from }) {
      if (!existsSync(home)) {
        await run('btrfs', from === undefined ? ['subvolume', 'create', home] : ['subvolume', 'snapshot', from, home]);
      }
      if (limitMiB !== undefined) await limit(home, limitMiB);
      if (uid !== undefined) chownSync(home, uid, uid);
      chmodSync(home, 0o700);
    },
    async snapshot(from, to, signal) {
      await this.remove(unfinished(to));
      await run('btrfs', ['subvolume', 'snapshot', from, unfinished(to)], { signal });
    },
    async finish(to, { uid, limitMiB, signal, onWhole }) {
      await giveAll(unfinished(to), uid, signal);
      await limit(unfinished(to), limitMiB);
      if (onWhole !== undefined) {
        await syncAll(homes);
        onWhole();
      }
      await this.remove(to);
      renameSync(unfinished(to), to);
      await syncAll(homes);
    },
    room: () => roomInImage(place),
    async usedBytes(home) {
      await counts.settled();
      const output = await run('btrfs', ['qgroup', 'show', '--raw', '-f', home]);
      return Number(/^\s*0\/\d+\s+(\d+)/m.exec(output)?.[1] ?? 0);
    },
    async remove(home) {
      if (existsSync(home)) await run('btrfs', ['subvolume', 'delete', home]);
    },
    async tend() {
      if (isFirst) await shrinkImage(place).finally(() => (isFirst = false));
      await growImage(place);
      await counts.check();
      if (Date.now() < tidyAtMs) return;
      tidyAtMs = Date.now() + tidyMs;
      await removeOldQuotas(homes);
    },
    fault: () => (isMounted(homes) ? faultOfHomes(homes) : 'the homes are not mounted'),
    async mend(release) {
      if (isDiskShort(image)) throw new Error('their disk is full');
      await release();
      const { source } = mountOf(homes) ?? {};
      const keepers = source === undefined ? [] : keepersOf(source);
      // While it is mounted anywhere, a new mount would have the same error.
      if (keepers.length > 0) {
        throw new Error(`other processes keep them mounted; end these: ${keepers.slice(0, 10).join(', ')}`);
      }
      if (source !== undefined) await run('umount', [homes]);
      const isFree = async () => (await run('losetup', ['--associated', image])) === '';
      const isDetached = await lookUntil(isFree, Boolean, { firstMs: 1, mostMs: 50, forMs: detachMs });
      if (!isDetached) throw new Error('something still keeps their loop device in use');
      await mount(image, homes);
      await keepCounting(homes);
    },
    async close() {
      if (isMounted(homes)) await run('umount', [homes]);
    },
  };
}
