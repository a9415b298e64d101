import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { untilAborted } from '../../../../base/async.ts';
import { syncFolder } from '../../../../disk/durable.ts';
import { outputOf, type Program } from '../../spawner/streams.ts';
import { type HostContext, requireHomes } from '../context.ts';
import { isDiskFull, mostStreamBytes, unfinished } from '../disks/disks.ts';
import type { FillOptions, HostSaves, SaveFormatName, StoredSave, TakenSave } from '../host.ts';
import { HostError } from '../hostErrors.ts';
import { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { inLaneOf } from '../life/fork.ts';
import { ownerOf, startFailure } from '../life/start.ts';
import { type ComputerRecord, isHosted, listRecords } from '../records.ts';
import { btrfsSaves, isPathTooLong } from './btrfs.ts';
import { fill } from './fill.ts';
import { discard, discardAll, saveFolder, saveIdsOf, snapshotIn } from './folders.ts';
import { tarSaves } from './tar.ts';

/** How a host saves homes. */
export interface SaveFormat {
  name: SaveFormatName;
  /** Which of these computers have changed since they were saved. */
  changed(computerIds: readonly string[]): Promise<string[]>;
  /** Keeps the home as it is now in the folder of a save. */
  keep(home: string, folder: string, signal: AbortSignal): Promise<void>;
  /** Starts the program that prints a save. `parent` is the folder of the save that it continues. */
  open(save: { home: string; folder: string; parent: string | null }, signal: AbortSignal): Promise<Program>;
}

interface Parts {
  context: HostContext;
  /** The lanes in which computers start and stop. */
  lanes: Lanes;
  /** Throws if this host does not have the computer. */
  known: (computerId: string) => ComputerRecord;
  /** Ends what uses the home of a stopped computer. */
  release: (computerId: string) => Promise<void>;
}

/** The saves of a host. Those of one computer run one at a time, and beside its other work except for the snapshot. */
export class Saves implements HostSaves {
  readonly #parts: Parts;
  readonly #format: SaveFormat;
  readonly #saving = new Lanes();
  readonly format: SaveFormatName;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#format = parts.context.disks.kind === 'limited' ? btrfsSaves(parts.context) : tarSaves(parts.context);
    this.format = this.#format.name;
  }

  async changed(): Promise<string[]> {
    const { context } = this.#parts;
    requireHomes(context);
    const hosted = listRecords(context.layout).filter(isHosted);
    const ids = hosted.map(({ computerId }) => computerId);
    return this.#format.changed(
      ids.filter((computerId) => existsSync(computerLayout(context.layout, computerId).home)),
    );
  }

  kept(computerId: string): string[] {
    const { layout } = this.#parts.context;
    const isKept = (saveId: string) => existsSync(snapshotIn(saveFolder(layout, computerId, saveId)));
    return saveIdsOf(layout, computerId).filter(isKept);
  }

  take(computerId: string, saveId: string): Promise<TakenSave> {
    return this.#saving.in(computerId, async (signal) => {
      const { context, known } = this.#parts;
      const { uid } = ownerOf(known(computerId));
      const folder = saveFolder(context.layout, computerId, saveId);
      const { home } = computerLayout(context.layout, computerId);
      if (!existsSync(folder)) await this.#take(computerId, home, folder, signal);
      const kept = existsSync(snapshotIn(folder)) ? snapshotIn(folder) : home;
      // The folder was made right before the snapshot.
      const { birthtime: takenAt } = statSync(folder);
      return { takenAt, homeBytes: await context.disks.usedBytes(kept), uid: uid ?? null, format: this.format };
    });
  }

  async #take(computerId: string, home: string, folder: string, signal: AbortSignal): Promise<void> {
    const { context, known } = this.#parts;
    const draft = unfinished(folder);
    await discard(context, draft);
    try {
      mkdirSync(draft, { recursive: true, mode: 0o700 });
      await this.#inLane(computerId, signal, async (inLane) => {
        requireHomes(context);
        known(computerId);
        await this.#format.keep(home, draft, inLane);
      });
      renameSync(draft, folder);
      await syncFolder(dirname(folder));
    } catch (error) {
      await discard(context, draft);
      throw isDiskFull(error) ? startFailure(error) : error;
    }
  }

  async *read(
    computerId: string,
    saveId: string,
    parentId: string | null,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const { context, known } = this.#parts;
    const opened = Promise.withResolvers<Program>();
    // The next save waits until the program has ended, but not for the reader.
    const work = async (own: AbortSignal) => {
      requireHomes(context);
      const folder = this.#folderOf(computerId, saveId);
      const parent = parentId === null ? null : this.#folderOf(computerId, parentId);
      const { home } = computerLayout(context.layout, computerId);
      const program = await this.#format.open({ home, folder, parent }, AbortSignal.any([own, signal]));
      opened.resolve(program);
      await program.ended.catch(() => undefined);
    };
    const { limits } = known(computerId);
    this.#saving.in(computerId, work).catch(opened.reject);
    try {
      yield* bounded(outputOf(await untilAborted(opened.promise, signal)), mostStreamBytes(limits));
    } catch (error) {
      throw isPathTooLong(error) ? new HostError('PATH_TOO_LONG', `a path in ${computerId} is too long`) : error;
    }
  }

  #folderOf(computerId: string, saveId: string): string {
    const folder = saveFolder(this.#parts.context.layout, computerId, saveId);
    if (!existsSync(folder)) throw new HostError('SAVE_ABSENT', `${saveId} of ${computerId} is not on this host`);
    return folder;
  }

  keepOnly(computerId: string, saveIds: readonly string[]): Promise<void> {
    return this.#saving.in(computerId, () =>
      discardAll(this.#parts.context, computerId, (saveId) => saveIds.includes(saveId)),
    );
  }

  fill(computerId: string, chain: readonly StoredSave[], { signal, ...options }: FillOptions): Promise<void> {
    const { context, release } = this.#parts;
    return this.#saving.in(computerId, (own) =>
      this.#inLane(computerId, AbortSignal.any([own, signal]), async (inLane) => {
        await release(computerId);
        await fill(context, computerId, chain, options, inLane);
      }),
    );
  }

  /** Runs `work` in the computer's lane. The signal also ends the wait for it, in which a removal may be. */
  async #inLane(computerId: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    let hasBegun = false;
    const begin = (inLane: AbortSignal) => {
      inLane.throwIfAborted();
      hasBegun = true;
      return work(inLane);
    };
    const done = inLaneOf(this.#parts.lanes, computerId, begin, signal);
    await untilAborted(done, signal).catch((error: unknown) => {
      if (hasBegun) return done;
      throw error;
    });
  }

  isBusy(computerId: string): boolean {
    return this.#saving.isBusy(computerId);
  }

  /** Ends the saves of a computer that is being removed, and removes their snapshots. */
  async remove(computerId: string): Promise<void> {
    const removed = new HostError('COMPUTER_ABSENT', `${computerId} is being removed`);
    await this.#saving.in(computerId, () => discardAll(this.#parts.context, computerId), removed);
  }

  /** Ends all saves. A repeated call of each continues it. */
  async endAll(why: string): Promise<void> {
    this.#saving.abort(new HostError('TIMED_OUT', why));
    await this.#saving.idle();
  }
}

async function* bounded(bytes: AsyncIterable<Buffer>, mostBytes: number): AsyncGenerator<Buffer> {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.length;
    if (count > mostBytes) throw new HostError('SAVE_TOO_LARGE', `a home has more than ${mostBytes} bytes as a stream`);
    yield chunk;
  }
}
