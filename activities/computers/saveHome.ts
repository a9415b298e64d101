import { type HomeSave, storedPieces } from '../../models/computers/saveRows.ts';
import { addPiece, beginSave, completeSave, noteTaken } from '../../models/computers/saves.ts';
import { newestNamed } from '../../models/computers/snapshots.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import type { HostDeps } from './deps.ts';

export type SaveDeps = Pick<HostDeps, 'config' | 'database' | 'host' | 'storage' | 'sealedSaves'>;

/** A piece is held in memory while it is compressed and sealed. */
const pieceBytes = 16 * 1_048_576;

/**
 * Saves a home once, as it is now: its host takes a snapshot, and the change since the last save goes to the object
 * store piece by piece. A save that was cut off goes on behind its last piece. Returns false if this host may not save
 * the computer.
 */
export async function saveHome(deps: SaveDeps, computerId: string, signal: AbortSignal): Promise<boolean> {
  const { database, host } = deps;
  const { hostId, saves } = host;
  const kept = saves.kept(computerId);
  const begun = await beginSave(database, { computerId, hostId }, kept);
  if (begun === undefined) return false;
  const earlier = kept.filter((id) => id !== begun.id);
  const save =
    begun.takenAt === null ? await noteTaken(database, begun, await saves.take(computerId, begun.id), earlier) : begun;
  if (save === undefined) return false;
  let number = await storedPieces(database, save);
  const stream = saves.read(computerId, save.id, save.parentId, signal);
  for await (const bytes of piecesOf(stream, number)) {
    await sendPiece(deps, save, number, bytes);
    signal.throwIfAborted();
    number += 1;
  }
  const isKept = await completeSave(database, save);
  await saves.keepOnly(computerId, isKept ? [save.id, ...(await newestNamed(database, computerId))] : earlier);
  return true;
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
