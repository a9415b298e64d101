import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../../../disk/durable.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { HostContext } from '../context.ts';
import { unfinished } from '../disks/disks.ts';
import { HostError } from '../hostErrors.ts';
import { Lanes } from '../lanes.ts';
import { type HostLayout, isComputerId } from '../layout.ts';
import { readRecord } from '../records.ts';

/** The user of saves that were asked for ahead. No computer has this id. */
export const asked = '.asked';

/** The snapshot in the folder of a save, a read-only subvolume. */
export const snapshotIn = (folder: string) => join(folder, 'home');

const namesIn = (folder: string) => ifThere(() => readdirSync(folder)) ?? [];

/** The folder that says that a computer uses a save. Without snapshots, it only says when the save was taken. */
export function folderOfUse({ saves }: HostLayout, computerId: string, saveId: string): string {
  const areIds = (computerId === asked || isComputerId(computerId)) && isComputerId(saveId);
  if (!areIds) throw new HostError('SAVE_ABSENT', 'that is no id of a save');
  return join(saves, computerId, saveId);
}

/** The saves that a computer uses. They were taken or received here. */
export const saveIdsOf = ({ saves }: HostLayout, computerId: string) =>
  namesIn(join(saves, computerId)).filter(isComputerId);

/**
 * The snapshots of a host, one for each save, however many computers use it. A snapshot is made before its first use,
 * and removed after its last one. If the host is killed in between, a sweep removes the snapshot that nobody uses.
 */
export class Snapshots {
  readonly #context: Pick<HostContext, 'disks' | 'layout'>;
  /** One task at a time for each save. */
  readonly #lanes = new Lanes();

  constructor(context: Pick<HostContext, 'disks' | 'layout'>) {
    this.#context = context;
  }

  folder(saveId: string): string {
    return join(this.#context.layout.snapshots, saveId);
  }

  has(saveId: string): boolean {
    return existsSync(snapshotIn(this.folder(saveId)));
  }

  /** The saves that a computer uses and of which this host has a snapshot. */
  of(computerId: string): string[] {
    return saveIdsOf(this.#context.layout, computerId).filter((saveId) => this.has(saveId));
  }

  /** Lets a computer use a snapshot. `make` makes it in a folder, unless this host has it. */
  async use(
    computerId: string,
    saveId: string,
    make: (folder: string, signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const use = folderOfUse(this.#context.layout, computerId, saveId);
    const work = async (inLane: AbortSignal) => {
      if (!this.has(saveId)) await this.#make(this.folder(saveId), (draft) => make(draft, inLane));
      await note(use);
    };
    await this.#lanes.until(saveId, work, signal);
  }

  /** Lets a computer use a snapshot that this host has, or is just getting. Returns false if it has none. */
  async share(computerId: string, saveId: string, signal: AbortSignal): Promise<boolean> {
    const use = folderOfUse(this.#context.layout, computerId, saveId);
    const work = async () => {
      if (!this.has(saveId)) return false;
      await note(use);
      return true;
    };
    return this.#lanes.until(saveId, work, signal);
  }

  /** Ends the use of the computer's other saves, and removes those of their snapshots that nobody else uses. */
  async keepOnly(computerId: string, stays: (saveId: string) => boolean = () => false): Promise<void> {
    const folder = join(this.#context.layout.saves, computerId);
    for (const saveId of namesIn(folder)) {
      await this.#lanes.in(saveId, async () => {
        if (stays(saveId)) return;
        rmdirSync(join(folder, saveId));
        await this.#removeUnused(saveId);
      });
    }
    if (existsSync(folder) && namesIn(folder).length === 0) rmdirSync(folder);
  }

  /** Keeps these of the host's snapshots although no computer may use them, until the next call names others. */
  async keep(saveIds: readonly string[], signal: AbortSignal): Promise<void> {
    for (const saveId of saveIds) if (this.has(saveId)) await this.share(asked, saveId, signal);
    await this.keepOnly(asked, (saveId) => saveIds.includes(saveId));
  }

  /** Ends what computers use that this host does not have. Removes snapshots that are unfinished or that nobody uses. */
  async removeStrays(isBusy: (computerId: string) => boolean): Promise<string[]> {
    const { layout } = this.#context;
    const done: string[] = [];
    for (const user of namesIn(layout.saves)) {
      const isKnown = () => user === asked || isBusy(user) || readRecord(layout, user) !== undefined;
      if (isKnown()) continue;
      await this.keepOnly(user, isKnown);
      done.push(`${user}: removed its stray saves`);
    }
    for (const name of namesIn(layout.snapshots)) {
      const saveId = name.endsWith(unfinished('')) ? name.slice(0, -unfinished('').length) : name;
      if (this.#lanes.isBusy(saveId)) continue;
      const work = () => (saveId === name ? this.#removeUnused(name) : this.#discard(this.folder(name)));
      await this.#lanes.in(saveId, work);
      if (!existsSync(this.folder(name))) done.push(`${name}: removed a stray snapshot`);
    }
    return done;
  }

  async #make(folder: string, make: (draft: string) => Promise<void>): Promise<void> {
    const draft = unfinished(folder);
    await this.#discard(draft);
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    try {
      await make(draft);
      renameSync(draft, folder);
      await syncFolder(dirname(folder));
    } catch (error) {
      await this.#discard(draft);
      throw error;
    }
  }

  async #removeUnused(saveId: string): Promise<void> {
    const { saves } = this.#context.layout;
    const isUsed = namesIn(saves).some((user) => existsSync(join(saves, user, saveId)));
    if (!isUsed) await this.#discard(this.folder(saveId));
  }

  async #discard(folder: string): Promise<void> {
    await this.#context.disks.remove(snapshotIn(folder));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Notes that a computer uses a save. */
export async function note(use: string): Promise<void> {
  mkdirSync(use, { recursive: true, mode: 0o700 });
  await syncFolder(dirname(use));
}

/**
 * Brings the snapshots of an earlier Atrium to their place: there, each computer had its own, in `.saves`. Goes on where
 * a kill has stopped it.
 */
export async function moveOldSnapshots({ disks, layout }: Pick<HostContext, 'disks' | 'layout'>): Promise<void> {
  const old = `${layout.saves}.old`;
  if (!existsSync(layout.snapshots)) {
    if (existsSync(layout.saves)) renameSync(layout.saves, old);
    mkdirSync(layout.snapshots, { mode: 0o700 });
  }
  for (const computerId of namesIn(old)) {
    for (const saveId of namesIn(join(old, computerId))) {
      const from = join(old, computerId, saveId);
      const to = join(layout.snapshots, saveId);
      if (saveId.endsWith(unfinished('')) || existsSync(to)) await disks.remove(snapshotIn(from));
      else {
        await note(folderOfUse(layout, computerId, saveId));
        renameSync(from, to);
      }
    }
  }
  rmSync(old, { recursive: true, force: true });
}
