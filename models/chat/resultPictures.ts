import { Readable } from 'node:stream';
import type { On } from '../database/bound.ts';
import { threadContainerId } from '../drive/containers.ts';
import type { Content } from '../drive/driveItem.ts';
import { findByPath } from '../drive/place.ts';
import { originsOf } from './forkThread.ts';
import { keepResultFile, type ResultStore, resultFileNames } from './largeResults.ts';
import type { Turn } from './turn.ts';

const extensions = { 'image/png': 'png', 'image/jpeg': 'jpg' } as const;

export type PictureType = keyof typeof extensions;

/** A picture that a tool has made: its bytes, and its size in pixels. */
export interface NewPicture {
  mediaType: PictureType;
  bytes: Buffer;
  width: number;
  height: number;
}

/** A picture in a result, by reference: a file of the thread, which clients get by thread-files/url. */
export interface ResultPicture {
  containerId: string;
  path: string;
  mediaType: PictureType;
  width: number;
  height: number;
}

/** Stores the picture of a call. Storing it again, after a crash, replaces it. */
export async function keepPicture(
  store: ResultStore,
  turn: Turn,
  toolCallId: string,
  { mediaType, bytes, width, height }: NewPicture,
): Promise<ResultPicture> {
  const file = await keepResultFile(store, turn, fileName(toolCallId, mediaType), Readable.from([bytes]));
  return { ...file, mediaType, width, height };
}

/** The type of the picture in a call's result, if its tool returned one in `picture`. */
export function pictureTypeOf(output: unknown): PictureType | undefined {
  if (typeof output !== 'object' || output === null || !('picture' in output)) return undefined;
  const type = (output.picture as { mediaType?: unknown } | null)?.mediaType;
  return type === 'image/png' || type === 'image/jpeg' ? type : undefined;
}

/**
 * The file of a call's picture; undefined if it is gone. It is found by the call's id alone, so no result can name
 * another file.
 */
export async function contentOfPicture(
  on: On,
  { spaceId, threadId }: Pick<Turn, 'spaceId' | 'threadId'>,
  toolCallId: string,
  mediaType: PictureType,
): Promise<Content | undefined> {
  const names = resultFileNames(fileName(toolCallId, mediaType));
  // A copy of a thread has no files of its own.
  for await (const id of originsOf(on, threadId)) {
    const found = await findByPath(on, { spaceId, containerId: threadContainerId(id), names });
    if (found !== undefined) return found.item.content;
  }
  return undefined;
}

function fileName(toolCallId: string, mediaType: PictureType): string {
  return `${toolCallId}.${extensions[mediaType]}`;
}
