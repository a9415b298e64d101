import { DomainError } from '../../base/errors.ts';
import { firstOf, wellFormedJson } from '../../base/text.ts';
import type { Database } from '../database/database.ts';
import { isAway } from '../database/unavailable.ts';
import type { Placed } from '../drive/changes.ts';
import { threadContainerId } from '../drive/containers.ts';
import { type ByteStore, type DriveLimits, UploadSession } from '../drive/uploadSession.ts';
import type { Turn } from './turn.ts';

/** A longer result is stored as a file, and the answer refers to it. */
export const maxInlineBytes = 64 * 1024;
/** A longer result is not stored at all. */
export const maxResultBytes = 100 * 1_000_000;
const previewCharacters = 4_000;

/** A result that is kept as a file of its thread. */
interface LargeResult {
  isLarge: true;
  bytes: number;
  /** Its beginning. */
  preview: string;
  /**
   * Where the whole result is: a file that `drive_read` reads and that clients get by thread-files/url. Null if the
   * drive had no room for it.
   */
  file: { containerId: string; path: string } | null;
}

export interface ResultStore {
  database: Database;
  storage: ByteStore;
  limits: DriveLimits;
  /** Called with the reason if a file could not be stored. */
  onFailure(error: unknown): void;
}

/**
 * A tool's result as the model and the clients get it: the result itself, or its beginning with a reference to a file
 * of the thread. Storing it again after a crash replaces the same file.
 */
export async function shorten(store: ResultStore, turn: Turn, toolCallId: string, output: unknown): Promise<unknown> {
  const isText = typeof output === 'string';
  const text = isText ? output.toWellFormed() : wellFormedJson(JSON.stringify(output) ?? 'null');
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxInlineBytes) return isText ? text : (output ?? null);
  if (bytes > maxResultBytes) {
    throw new DomainError('tooLarge', 'TOOL_RESULT_TOO_LARGE', 'The result is larger than 100 MB. Ask for less of it.');
  }
  const name = `${toolCallId}.${isText ? 'txt' : 'json'}`;
  const file = await keepResultFile(store, turn, name, inPieces(text)).catch((error: unknown) => {
    // Retry if the store is unreachable. A store without room stays full, so only the preview is returned.
    if (isAway(error)) throw error;
    store.onFailure(error);
    return null;
  });
  return { isLarge: true, bytes, preview: firstOf(text, previewCharacters), file } satisfies LargeResult;
}

/** Stores a file that a tool's result refers to. Storing it again replaces it. */
export async function keepResultFile(
  store: ResultStore,
  turn: Turn,
  name: string,
  bytes: AsyncIterable<Buffer>,
): Promise<NonNullable<LargeResult['file']>> {
  const names = resultFileNames(name);
  await keepThreadFile(store, turn, names, bytes);
  return { containerId: threadContainerId(turn.threadId), path: `/${names.join('/')}` };
}

/** Stores a file of a thread. Storing it again replaces it. */
export async function keepThreadFile(
  { database, storage, limits }: Pick<ResultStore, 'database' | 'storage' | 'limits'>,
  { spaceId, userId, threadId }: Pick<Turn, 'spaceId' | 'userId' | 'threadId'>,
  names: readonly string[],
  bytes: AsyncIterable<Buffer>,
): Promise<Placed> {
  const name = names.at(-1) ?? '';
  await using session = new UploadSession({ database, store: storage, limits }, spaceId);
  const file = await session.receive(bytes, name);
  const target = {
    spaceId,
    userId,
    containerId: threadContainerId(threadId),
    names,
    pathOf: 'file',
    fileName: name,
    onConflict: 'replace',
  } as const;
  const [placed] = await session.place([{ target, file }]);
  if (placed === undefined) throw new Error('Unreachable: a file is placed for each that is given.');
  return placed;
}

/** The path of a result file in the thread's container. */
export function resultFileNames(name: string): string[] {
  return ['tool-results', name];
}

const pieceBytes = 1024 * 1024;

async function* inPieces(text: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
