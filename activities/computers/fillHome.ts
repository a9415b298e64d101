import { buffer } from 'node:stream/consumers';
import { DomainError } from '../../base/errors.ts';
import type { FillOptions, StoredSave } from '../../integrations/computers/host/host.ts';
import { type Computer, findComputer } from '../../models/computers/computer.ts';
import type { ComputerOrder } from '../../models/computers/computers.ts';
import type { RestoreSource } from '../../models/computers/restoreSources.ts';
import { chainOf, findSave, type HomeSave, pieceKeys } from '../../models/computers/saveRows.ts';
import { saveBroken } from '../../models/computers/sealedSaves.ts';
import type { HostDeps } from './deps.ts';

export type FillDeps = Pick<HostDeps, 'database' | 'host' | 'storage' | 'sealedSaves'>;

/**
 * Makes the home of a computer on this host from its head, where the host has none yet. A home that is here stays as it
 * is: it is as new as the head, or newer. `isKnown`: the host has the computer already. Without a head, forgets what an
 * unfinished fill has left, and makes the base or the image that the computer begins with.
 */
export async function fillHome(
  deps: FillDeps,
  { id, homeSaveId, spaceId, base, image }: Computer,
  { limits }: Pick<ComputerOrder, 'limits'>,
  { isKnown, signal }: { isKnown: boolean; signal: AbortSignal },
): Promise<void> {
  if (homeSaveId === null && isKnown) return;
  if (homeSaveId === null) {
    // It may have been discarded because it could not be filled.
    await deps.host.saves.forgetFill(id, base ?? undefined);
    if (base === null) return;
    if (image === null) await deps.host.prepareBase(base, signal);
    else await deps.host.prepareImage(image, signal);
    return;
  }
  const head = await savedAs(deps, homeSaveId);
  if (isKnown && head.hostId === deps.host.hostId) return;
  await fill(deps, id, head, { limits, spaceId, signal, ...baseOf(head) });
}

/**
 * Replaces the volume of a stopped computer on this host by a saved one, with or without the home that it has. If it
 * fails, the present volume stays.
 */
export async function replaceHome(
  deps: FillDeps,
  { id, spaceId }: Computer,
  { saveId, keepsHome }: Pick<RestoreSource, 'saveId' | 'keepsHome'>,
  { limits, signal }: Pick<ComputerOrder, 'limits'> & { signal: AbortSignal },
): Promise<void> {
  const save = await savedAs(deps, saveId);
  await fill(deps, id, save, { limits, spaceId, signal, replaces: true, keepsHome, ...baseOf(save) });
}

function baseOf({ base }: HomeSave): Pick<FillOptions, 'base'> {
  return base === null ? {} : { base };
}

async function savedAs({ database }: FillDeps, saveId: string): Promise<HomeSave> {
  const save = await findSave(database.pool, saveId);
  if (save === undefined) throw saveBroken();
  return save;
}

/** Each save is sealed under the key of its own space. One of another space must be shared. */
async function fill(deps: FillDeps, computerId: string, head: HomeSave, options: FillOptions): Promise<void> {
  const chain = await chainOf(deps.database.pool, head);
  if (chain.some(({ spaceId, isShared }) => spaceId !== options.spaceId && isShared !== 1)) throw saveBroken();
  await deps.host.saves.fill(
    computerId,
    chain.map((save) => savedHome(deps, save)),
    options,
  );
}

function savedHome(deps: FillDeps, save: HomeSave): StoredSave {
  const { id, format, uid, homeBytes } = save;
  if (format === null) throw saveBroken();
  return { saveId: id, format, uid, homeBytes: Number(homeBytes), open: (signal) => openSave(deps, save, signal) };
}

/** The raw stream of a save. Each piece is authentic, and none may be missing. */
async function* openSave(
  { database, storage, sealedSaves }: FillDeps,
  { id, spaceId, pieces }: HomeSave,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const keys = await pieceKeys(database, { id });
  if (keys.length !== pieces) throw saveBroken();
  for (const [number, key] of keys.entries()) {
    signal.throwIfAborted();
    const sealed = await storage
      .read(key)
      .then(buffer)
      .catch((error: unknown) => {
        throw isDamaged(error) ? saveBroken(error) : error;
      });
    yield await sealedSaves.open({ spaceId, saveId: id, number }, sealed);
  }
}

function isDamaged(error: unknown): boolean {
  return error instanceof DomainError && ['CONTENT_DAMAGED', 'CONTENT_MISSING'].includes(error.code);
}

/** Whether a home can be made from its head, by reading all of it. True for a computer without one. */
export async function opens(deps: FillDeps, computerId: string, signal: AbortSignal): Promise<boolean> {
  const headId = (await findComputer(deps.database, computerId))?.homeSaveId ?? null;
  if (headId === null) return true;
  try {
    for (const save of await chainOf(deps.database.pool, await savedAs(deps, headId))) {
      for await (const _piece of openSave(deps, save, signal)) signal.throwIfAborted();
    }
    return true;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'SAVE_BROKEN') return false;
    throw error;
  }
}
