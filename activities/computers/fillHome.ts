import { buffer } from 'node:stream/consumers';
import { DomainError } from '../../base/errors.ts';
import type { StoredSave } from '../../integrations/computers/host/host.ts';
import type { Computer } from '../../models/computers/computer.ts';
import type { ComputerOrder } from '../../models/computers/computers.ts';
import { chainOf, findSave, type HomeSave, pieceKeys } from '../../models/computers/saveRows.ts';
import type { HostDeps } from './deps.ts';

export type FillDeps = Pick<HostDeps, 'database' | 'host' | 'storage' | 'sealedSaves'>;

/**
 * Makes the home of a computer on this host from its head, where the host has none yet. A home that is here stays as it
 * is: it is as new as the head, or newer. `isKnown`: the host has the computer already.
 */
export async function fillHome(
  deps: FillDeps,
  { id, homeSaveId, spaceId }: Computer,
  { limits }: Pick<ComputerOrder, 'limits'>,
  { isKnown, signal }: { isKnown: boolean; signal: AbortSignal },
): Promise<void> {
  if (homeSaveId === null) return;
  const { database, host } = deps;
  const head = await findSave(database.pool, homeSaveId);
  if (head === undefined) throw broken();
  if (isKnown && head.hostId === host.hostId) return;
  const chain = (await chainOf(database.pool, head)).map((save) => savedHome(deps, save));
  await host.saves.fill(id, chain, { limits, spaceId, signal });
}

function savedHome(deps: FillDeps, save: HomeSave): StoredSave {
  const { id, format, uid, homeBytes } = save;
  if (format === null) throw broken();
  return { saveId: id, format, uid, homeBytes: Number(homeBytes), open: (signal) => openSave(deps, save, signal) };
}

/** The raw stream of a save. Each piece is authentic, and none may be missing. */
async function* openSave(
  { database, storage, sealedSaves }: FillDeps,
  { id, spaceId, pieces }: HomeSave,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const keys = await pieceKeys(database, { id });
  if (keys.length !== pieces) throw broken();
  for (const [number, key] of keys.entries()) {
    signal.throwIfAborted();
    yield await sealedSaves.open({ spaceId, saveId: id, number }, await buffer(await storage.read(key)));
  }
}

function broken(): DomainError {
  const detail = 'The saved home of the computer is damaged and cannot be opened.';
  return new DomainError('unprocessable', 'SAVE_BROKEN', detail);
}
