import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lookUntil } from '../../../../base/async.ts';
import { run } from '../../spawner/spawner.ts';
import { ifThere } from '../../system/ifThere.ts';
import { runHere } from '../../system/programs.ts';

/** The lowest id of a subvolume. The file system's own tree has a lower one. */
const firstVolume = 256;
/** The height of the tallest tree, so that the kernel goes on counting for each. */
const tallestTree = 8;
/** The pause after a count: at least this, and so many times as long as that took. */
const pauseMs = 5_000;
const pauseFactor = 3;
/** How long a reader waits for the end of a count. */
const settleMs = 10_000;

/** What btrfs counts for its quotas. Without it, no limit holds. */
export interface Counts {
  /**
   * Starts to count all anew if the counts are wrong: after a power cut, or where the kernel has lost count because a
   * volume was removed while another with the same files was changed.
   */
  check(): Promise<void>;
  /** Waits a moment for right counts. While the kernel counts anew, it shows less than there is. */
  settled(): Promise<void>;
}

/**
 * Makes the kernel count on when a large subvolume is removed. By default it stops then, to save time, until all is
 * counted anew. Older kernels always count.
 */
export async function keepCounting(homes: string): Promise<Counts> {
  const folder = await folderOfCounts(homes);
  if (folder !== undefined) {
    ifThere(() => writeFileSync(join(folder, 'drop_subtree_threshold'), String(tallestTree), { flag: 'r+' }));
  }
  if (folder === undefined) return { check: async () => undefined, settled: async () => undefined };
  const isRight = () => !isWrong(folder);
  const untilRight = { firstMs: 20, mostMs: 500, forMs: settleMs };
  let nextAtMs = 0;
  let counting: Promise<unknown> | undefined;

  async function count(): Promise<void> {
    const begunAtMs = Date.now();
    await run('btrfs', ['quota', 'rescan', homes]).catch((error: unknown) => {
      // The kernel goes on with what another process or a mount has begun.
      if (!String(error).includes('in progress')) throw error;
    });
    await lookUntil(isRight, Boolean, untilRight);
    nextAtMs = Date.now() + Math.max(pauseMs, pauseFactor * (Date.now() - begunAtMs));
  }

  async function check(): Promise<void> {
    if (isRight() || Date.now() < nextAtMs) return;
    counting ??= count().finally(() => {
      counting = undefined;
    });
    await counting;
  }

  return {
    check,
    async settled() {
      if (isRight() || nextAtMs > Date.now() + settleMs) return;
      const look = () => check().then(isRight, isRight);
      await lookUntil(look, Boolean, untilRight);
    },
  };
}

/** Whether the counts are wrong now, so that limits may not hold. */
export async function areCountsWrong(homes: string): Promise<boolean> {
  const folder = await folderOfCounts(homes).catch(() => undefined);
  return folder !== undefined && isWrong(folder);
}

const isWrong = (folder: string) => ifThere(() => readFileSync(join(folder, 'inconsistent'), 'utf8'))?.trim() === '1';

/** Where the kernel shows its counts. */
async function folderOfCounts(homes: string): Promise<string | undefined> {
  const [, uuid] = /\buuid: (\S+)/.exec(await runHere('btrfs', ['filesystem', 'show', homes])) ?? [];
  return uuid === undefined ? undefined : `/sys/fs/btrfs/${uuid}/qgroups`;
}

/** Removes the quotas of deleted subvolumes. Older kernels keep them, and each save would leave one more. */
export async function removeOldQuotas(homes: string): Promise<void> {
  const quotas = await run('btrfs', ['qgroup', 'show', '--raw', homes]);
  const volumes = await run('btrfs', ['subvolume', 'list', homes]);
  const deleted = await run('btrfs', ['subvolume', 'list', '-d', homes]); // not cleaned up yet
  for (const quota of oldQuotas(quotas, volumes + deleted)) {
    // A newer kernel may just have removed it.
    await run('btrfs', ['qgroup', 'destroy', quota, homes]).catch(() => undefined);
  }
}

/** The quotas in the list of quotas whose subvolumes are not in the list of subvolumes. */
export function oldQuotas(quotas: string, volumes: string): string[] {
  const used = new Set([...volumes.matchAll(/^ID (\d+) /gm)].map(([, id]) => Number(id)));
  const ids = [...quotas.matchAll(/^0\/(\d+) /gm)].map(([, id]) => Number(id));
  return ids.filter((id) => id >= firstVolume && !used.has(id)).map((id) => `0/${id}`);
}
