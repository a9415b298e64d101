import { statSync } from 'node:fs';
import { run } from '../../spawner/spawner.ts';
import { openProgram, ProgramFailed, patiently } from '../../spawner/streams.ts';
import type { HostContext } from '../context.ts';
import { computerLayout } from '../layout.ts';
import type { SaveFormat } from './saves.ts';
import { type Snapshots, snapshotIn } from './snapshots.ts';

/** What programs have written so far has to get to the disk first. */
const syncTimeoutMs = 10 * 60_000;

/** Saves homes by snapshots. They are outside of the homes' limits, and share with the homes what has not changed. */
export function btrfsSaves({ layout }: Pick<HostContext, 'layout'>, snapshots: Snapshots): SaveFormat {
  const { homes } = layout;
  const snapshotOf = (saveId: string) => snapshotIn(snapshots.folder(saveId));
  return {
    name: 'btrfs',
    async changed(computerIds) {
      await syncHomes(homes);
      const listing = await run('btrfs', ['subvolume', 'list', '-gcuq', homes]);
      return unsaved(listing, computerIds, (computerId) => snapshots.of(computerId));
    },
    async keep({ computerId, saveId }, signal) {
      const { home } = computerLayout(layout, computerId);
      const make = async (folder: string, inLane: AbortSignal) => {
        const args = ['subvolume', 'snapshot', '-r', home, snapshotIn(folder)];
        await run('btrfs', args, { signal: inLane, timeoutMs: syncTimeoutMs });
      };
      await snapshots.use(computerId, saveId, make, signal);
      // The folder was made right before the snapshot.
      return { takenAt: statSync(snapshots.folder(saveId)).birthtime, kept: snapshotOf(saveId) };
    },
    open({ saveId, parentId }, signal) {
      const since = parentId === null ? [] : ['-p', snapshotOf(parentId)];
      const args = ['send', '--quiet', ...since, snapshotOf(saveId)];
      return openProgram('btrfs', args, { signal, through: patiently, reason: pathTooLong });
    },
  };
}

/** Its other thread may complain of the closed stream after that. */
const pathTooLong = /send ioctl failed with -36\b/;

/** Whether `btrfs send` failed because a path has more than 4,095 bytes. */
export function isPathTooLong(error: unknown): boolean {
  return error instanceof ProgramFailed && pathTooLong.test(error.message);
}

/** Writes down what programs have written so far. */
export async function syncHomes(homes: string): Promise<void> {
  await run('btrfs', ['filesystem', 'sync', homes], { timeoutMs: syncTimeoutMs });
}

interface Volume {
  uuid: string;
  /** The volume of which it is a snapshot. */
  parentUuid: string;
  /** The transaction that changed it last. Known once that is written down. */
  generation: number;
  /** The transaction that made it. */
  madeIn: number;
}

/**
 * Which computers have changed since they were saved, by the list of all volumes and the saves that each computer uses.
 * A snapshot has everything of its transaction, so a home whose generation is not newer than its newest snapshot equals
 * that. A home that was made from a snapshot equals it until its first change.
 */
export function unsaved(
  listing: string,
  computerIds: readonly string[],
  usedBy: (computerId: string) => readonly string[],
): string[] {
  const volumes = volumesIn(listing);
  return computerIds.filter((computerId) => {
    const home = volumes.get(computerId);
    if (home === undefined) return false;
    const kept = usedBy(computerId).flatMap((saveId) => volumes.get(`.snapshots/${saveId}/home`) ?? []);
    const taken = kept.filter(({ parentUuid }) => parentUuid === home.uuid).map(({ madeIn }) => madeIn);
    const filled = kept.filter(({ uuid }) => uuid === home.parentUuid).map(() => home.madeIn);
    return home.generation > Math.max(...taken, ...filled, Number.NEGATIVE_INFINITY);
  });
}

const line = /^ID \d+ gen (\d+) cgen (\d+) .*parent_uuid (\S+) +uuid (\S+) path (.+)$/;

function volumesIn(listing: string): Map<string, Volume> {
  const volumes = new Map<string, Volume>();
  for (const text of listing.split('\n')) {
    const [, generation, madeIn, parentUuid = '', uuid = '', path] = line.exec(text) ?? [];
    if (path === undefined) continue;
    volumes.set(path, { uuid, parentUuid, generation: Number(generation), madeIn: Number(madeIn) });
  }
  return volumes;
}
