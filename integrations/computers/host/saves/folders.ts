import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';
import type { HostContext } from '../context.ts';
import { unfinished } from '../disks/disks.ts';
import { HostError } from '../hostErrors.ts';
import { type HostLayout, isComputerId } from '../layout.ts';
import { readRecord } from '../records.ts';

/** The folder of a save. It has this name once the snapshot in it is complete and on the disk. */
export function saveFolder({ saves }: HostLayout, computerId: string, saveId: string): string {
  if (!isComputerId(computerId) || !isComputerId(saveId)) throw new HostError('SAVE_ABSENT', 'that is no id of a save');
  return join(saves, computerId, saveId);
}

/** The snapshot of a save, a read-only subvolume. Other file systems have none. */
export const snapshotIn = (folder: string) => join(folder, 'home');

const isFinished = (name: string) => !name.endsWith(unfinished(''));

const namesIn = (folder: string) => ifThere(() => readdirSync(folder)) ?? [];

/** The saves of a computer that were taken or received here. */
export function saveIdsOf({ saves }: HostLayout, computerId: string): string[] {
  return namesIn(join(saves, computerId)).filter(isFinished);
}

export async function discard({ disks }: Pick<HostContext, 'disks'>, folder: string): Promise<void> {
  await disks.remove(snapshotIn(folder));
  rmSync(folder, { recursive: true, force: true });
}

/** Removes a computer's saves on this host, except those that are to stay. */
export async function discardAll(
  context: Pick<HostContext, 'disks' | 'layout'>,
  computerId: string,
  stays: (saveId: string) => boolean = () => false,
): Promise<void> {
  const folder = join(context.layout.saves, computerId);
  for (const name of namesIn(folder)) if (!stays(name)) await discard(context, join(folder, name));
  if (existsSync(folder) && namesIn(folder).length === 0) rmdirSync(folder);
}

/** Removes the saves of computers that this host does not have, and what was neither taken nor received completely. */
export async function removeStraySaves(
  context: Pick<HostContext, 'disks' | 'layout'>,
  isBusy: (computerId: string) => boolean,
): Promise<string[]> {
  const done: string[] = [];
  for (const computerId of namesIn(context.layout.saves)) {
    if (isBusy(computerId)) continue;
    const isKnown = readRecord(context.layout, computerId) !== undefined;
    const strays = namesIn(join(context.layout.saves, computerId)).filter((name) => !isKnown || !isFinished(name));
    if (isKnown && strays.length === 0) continue;
    await discardAll(context, computerId, (saveId) => !strays.includes(saveId));
    done.push(`${computerId}: removed ${strays.length} stray saves`);
  }
  return done;
}
