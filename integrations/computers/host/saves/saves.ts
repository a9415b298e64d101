import { existsSync } from 'node:fs';
import { untilAborted } from '../../../../base/async.ts';
import { outputOf, type Program } from '../../spawner/streams.ts';
import type { BaseName } from '../../types.ts';
import { type HostContext, requireHomes } from '../context.ts';
import { isDiskFull, leastForHome, mostStreamBytes } from '../disks/disks.ts';
import { hasSetIds } from '../disks/watched.ts';
import type { FillOptions, HostSaves, SaveFormatName, StoredSave, TakenSave } from '../host.ts';
import { HostError } from '../hostErrors.ts';
import { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { inLaneOf } from '../life/fork.ts';
import { ownerOf, startFailure } from '../life/start.ts';
import { type ComputerRecord, isHosted, listRecords, readRecord } from '../records.ts';
import { btrfsSaves, isPathTooLong } from './btrfs.ts';
import { fill, forgetFill } from './fill.ts';
import { asked, folderOfUse, Snapshots } from './snapshots.ts';
import { tarSaves } from './tar.ts';

/** How a host saves homes. */
export interface SaveFormat {
  name: SaveFormatName;
  /** Which of these computers have changed since they were saved. */
  changed(computerIds: readonly string[]): Promise<string[]>;
  /** Keeps the home as it is now, unless this save was taken before. Returns when that was, and what is kept. */
  keep(save: OwnSave, signal: AbortSignal): Promise<{ takenAt: Date; kept: string }>;
  /** Starts the program that prints a save, or its change since its parent. */
  open(save: OwnSave & { parentId: string | null }, signal: AbortSignal): Promise<Program>;
}

/** A save that a computer uses. */
interface OwnSave {
  computerId: string;
  saveId: string;
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
  readonly #snapshots: Snapshots;
  readonly #format: SaveFormat;
  readonly #saving = new Lanes();
  readonly format: SaveFormatName;

  constructor(parts: Parts) {
    const { context } = parts;
    this.#parts = parts;
    this.#snapshots = new Snapshots(context);
    this.#format = context.disks.kind === 'limited' ? btrfsSaves(context, this.#snapshots) : tarSaves(context);
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
    return this.#snapshots.of(computerId);
  }

  isFull(): boolean {
    return this.#parts.context.disks.room().freeBytes < leastForHome;
  }

  /** Lets a copy of a computer use the saves of that, so that its own saves can follow these. */
  async share(from: string, to: string, signal: AbortSignal): Promise<void> {
    const { context, known } = this.#parts;
    const hasOtherOwner = ownerOf(known(to)).uid !== undefined;
    if (hasOtherOwner && (await hasSetIds(computerLayout(context.layout, to).home, signal))) return;
    for (const saveId of this.kept(from)) await this.#snapshots.share(to, saveId, signal);
  }

  keep(saveIds: readonly string[]): Promise<void> {
    return this.#saving.in(asked, (signal) => this.#snapshots.keep(saveIds, signal));
  }

  take(computerId: string, saveId: string): Promise<TakenSave> {
    return this.#saving.in(computerId, async (signal) => {
      const { context, known, lanes } = this.#parts;
      const record = known(computerId);
      const { uid = null } = ownerOf(record);
      const { base = null } = record;
      const work = (inLane: AbortSignal) => {
        requireHomes(context);
        known(computerId);
        return this.#format.keep({ computerId, saveId }, inLane);
      };
      const { takenAt, kept } = await inLaneOf(lanes, computerId, work, signal).catch((error: unknown) => {
        throw isDiskFull(error) ? startFailure(error) : error;
      });
      return { takenAt, homeBytes: await context.disks.usedBytes(kept), uid, base, format: this.format };
    });
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
      for (const id of parentId === null ? [saveId] : [saveId, parentId]) this.#requireSave(computerId, id);
      const save = { computerId, saveId, parentId };
      const program = await this.#format.open(save, AbortSignal.any([own, signal]));
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

  #requireSave(computerId: string, saveId: string): void {
    if (existsSync(folderOfUse(this.#parts.context.layout, computerId, saveId))) return;
    throw new HostError('SAVE_ABSENT', `${saveId} of ${computerId} is not on this host`);
  }

  keepOnly(computerId: string, saveIds: readonly string[]): Promise<void> {
    return this.#saving.in(computerId, () =>
      this.#snapshots.keepOnly(computerId, (saveId) => saveIds.includes(saveId)),
    );
  }

  fill(computerId: string, chain: readonly StoredSave[], { signal, ...options }: FillOptions): Promise<void> {
    const { context, lanes, release } = this.#parts;
    const snapshots = this.#snapshots;
    const work = async (inLane: AbortSignal) => {
      await release(computerId);
      await fill({ ...context, snapshots }, computerId, chain, options, inLane).catch(async (error: unknown) => {
        if (!(error instanceof HostError) || error.code !== 'DISK_FULL' || this.#hasHome(computerId)) throw error;
        await snapshots.keepOnly(computerId);
        throw new HostError('NO_ROOM_FOR_HOME', error.message);
      });
    };
    return this.#saving.in(computerId, (own) => inLaneOf(lanes, computerId, work, AbortSignal.any([own, signal])));
  }

  forgetFill(computerId: string, base?: BaseName): Promise<void> {
    const { context, lanes } = this.#parts;
    const snapshots = this.#snapshots;
    const work = () =>
      lanes.in(computerId, (signal) => forgetFill({ ...context, snapshots }, computerId, base, signal));
    return this.#saving.in(computerId, work);
  }

  /** Whether this host has the computer's home, or the whole volume that replaces that. */
  #hasHome(computerId: string): boolean {
    const { layout } = this.#parts.context;
    const record = readRecord(layout, computerId);
    if (record?.swap !== undefined) return true;
    return record !== undefined && isHosted(record) && existsSync(computerLayout(layout, computerId).home);
  }

  /** Removes the snapshots that nobody uses any more. Leaves alone what these computers use. */
  removeStrays(isInUse: (computerId: string) => boolean): Promise<string[]> {
    return this.#snapshots.removeStrays((id) => isInUse(id) || this.#saving.isBusy(id));
  }

  /** Ends the saves of a computer that is being removed, and removes their snapshots. */
  async remove(computerId: string): Promise<void> {
    const removed = new HostError('COMPUTER_ABSENT', `${computerId} is being removed`);
    await this.#saving.in(computerId, () => this.#snapshots.keepOnly(computerId), removed);
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
