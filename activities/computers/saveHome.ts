import { DomainError } from '../../base/errors.ts';
import { ProgramFailed } from '../../integrations/computers/spawner/streams.ts';
import { giveUpSave, type HomeSave, storedPieces } from '../../models/computers/saveRows.ts';
import { addPiece, beginSave, completeSave, noteTaken, usefulSaves } from '../../models/computers/saves.ts';
import { savesBesideHead } from '../../models/computers/snapshots.ts';
import { isAway } from '../../models/database/unavailable.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import type { HostDeps } from './deps.ts';

export type SaveDeps = Pick<HostDeps, 'config' | 'database' | 'host' | 'storage' | 'sealedSaves'>;

export interface SaveOptions {
  signal: AbortSignal;
  /** Whether a whole home is avoided, since the space lately had no room for all bytes. */
  avoidsBase: boolean;
}

/** A piece is held in memory while it is compressed and sealed. */
const pieceBytes = 16 * 1_048_576;

/**
 * Saves a home once, as it is now: its host takes a snapshot, and the change since the last save goes to the object
 * store piece by piece. A save that was cut off goes on behind its last piece. One that cannot be sent is given up, so
 * that the next one takes the home as it is then. Returns false if this host may not save the computer.
 */
export async function saveHome(deps: SaveDeps, computerId: string, options: SaveOptions): Promise<boolean> {
  const { database, host } = deps;
  const { hostId, saves } = host;
  const kept = saves.kept(computerId);
  const begun = await beginSave(database, { computerId, hostId }, kept);
  if (begun === undefined) return false;
  const earlier = kept.filter((id) => id !== begun.id);
  try {
    const save = begun.takenAt === null ? await take(deps, begun, earlier, options) : begun;
    if (save === undefined) return false;
    await send(deps, save, options.signal);
  } catch (error) {
    if (!options.signal.aborted && !mayPass(error)) {
      await giveUp(deps, begun, kept).catch(() => undefined); // the next attempt does it
    }
    throw error;
  }
  const isKept = await completeSave(database, begun);
  await saves.keepOnly(computerId, isKept ? [begun.id, ...(await savesBesideHead(database, computerId))] : earlier);
  return true;
}

async function take(
  { database, host }: SaveDeps,
  save: HomeSave,
  earlier: readonly string[],
  options: SaveOptions,
): Promise<HomeSave | undefined> {
  return noteTaken(database, save, await host.saves.take(save.computerId, save.id), earlier, options);
}

/** Stores the pieces of a save that are not stored yet. */
async function send(deps: SaveDeps, save: HomeSave, signal: AbortSignal): Promise<void> {
  let number = await storedPieces(deps.database, save);
  const stream = deps.host.saves.read(save.computerId, save.id, save.parentId, signal);
  for await (const bytes of piecesOf(stream, number)) {
    await sendPiece(deps, save, number, bytes);
    signal.throwIfAborted();
    number += 1;
  }
}

/** Whether a save that failed may succeed later with the same snapshot. */
function mayPass(error: unknown): boolean {
  if (isAway(error) || (error as { code?: unknown }).code === 'TIMED_OUT') return true;
  // A signal ends the program when the machine shuts down.
  if (error instanceof ProgramFailed) return !/^ \(\d+\)$/.test(error.how);
  return error instanceof DomainError && error.kind === 'unavailable';
}

/** Removes the snapshot first: if the process ends here, the home does not look saved. */
async function giveUp({ database, host }: SaveDeps, save: HomeSave, kept: readonly string[]): Promise<void> {
  const { id, computerId } = save;
  const { hostId, saves } = host;
  const useful = await usefulSaves(database, { computerId, hostId }, kept);
  await saves.keepOnly(
    computerId,
    useful.filter((usefulId) => usefulId !== id),
  );
  await giveUpSave(database, id);
}

async function sendPiece(
  { config, database, storage, sealedSaves }: SaveDeps,
  save: HomeSave,
  number: number,
  bytes: Buffer,
): Promise<void> {
  const sealed = await sealedSaves.seal({ spaceId: save.spaceId, saveId: save.id, number }, bytes);
  const { quotaBytes } = config.drive;
  await using arriving = await beginObject({ database, store: storage, quotaBytes }, save.spaceId);
  const { objectKey, reserve } = arriving;
  const sent = { fileName: 'home', maxBytes: sealed.length, reserve };
  const { size, sha256 } = await storage.write(objectKey, one(sealed), sent);
  await addPiece(database, save, { number, objectKey, storedBytes: size, sha256 });
}

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** The stream in pieces of the same size, without the first `skipped` ones. The last piece is smaller. */
async function* piecesOf(stream: AsyncIterable<Buffer>, skipped: number): AsyncGenerator<Buffer> {
  let toSkip = skipped * pieceBytes;
  let gathered: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let rest = chunk.subarray(Math.min(toSkip, chunk.length));
    toSkip -= chunk.length - rest.length;
    while (rest.length > 0) {
      const part = rest.subarray(0, pieceBytes - length);
      gathered.push(part);
      length += part.length;
      rest = rest.subarray(part.length);
      if (length < pieceBytes) continue;
      yield Buffer.concat(gathered);
      [gathered, length] = [[], 0];
    }
  }
  if (length > 0) yield Buffer.concat(gathered);
}
