import { mkdirSync, renameSync } from 'node:fs';
import { run } from '../spawner/spawner.ts';
import type { HostContext } from './context.ts';
import { isDiskFull } from './disks/disks.ts';
import { syncAll } from './disks/watched.ts';
import type { HostError } from './hostErrors.ts';
import { startFailure } from './life/start.ts';

/**
 * Makes a volume from which computers begin. Until it is whole, it has another name. `fill` gets its folder. Throws
 * `DISK_FULL`, or what `failed` makes of another error.
 */
export async function makeBaseVolume(
  { disks, layout }: HostContext,
  volume: string,
  {
    limitMiB,
    fill,
    failed,
  }: { limitMiB?: number; fill(draft: string): Promise<void>; failed(error: unknown): HostError },
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(layout.bases, { recursive: true, mode: 0o700 });
  const draft = unfinishedBase(volume);
  await disks.remove(draft);
  try {
    await disks.create(draft, { uid: undefined, limitMiB });
    await fill(draft);
    await syncAll(layout.homes);
    await run('btrfs', ['property', 'set', draft, 'ro', 'true']);
    renameSync(draft, volume);
    await syncAll(layout.homes);
  } catch (error) {
    await disks.remove(draft).catch(() => undefined); // the next attempt does it
    if (signal.aborted) throw error;
    if (isDiskFull(error)) throw startFailure(error);
    throw failed(error);
  }
}

/** The name of such a volume until it is whole. */
export const unfinishedBase = (volume: string) => `${volume}.new`;
