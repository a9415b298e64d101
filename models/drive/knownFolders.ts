import { keepBounded } from '../../base/freshCache.ts';
import { modelsOf } from '../database/bound.ts';
import type { Drive } from './drive.ts';
import { Place } from './place.ts';
import type { FileTarget } from './placeFile.ts';

const maxFolders = 1_000;
/** Deeper folders are not remembered. */
const maxLevels = 16;

/** A folder that recently received a file, and its drive's number. */
export interface KnownFolder {
  key: string;
  driveNumber: number;
  place: Place;
}

/** A new file in a known folder. */
export interface KnownSpot {
  folder: KnownFolder;
  name: string;
  /** The file's name if `name` turns out to be an existing folder that the file then goes into. */
  nameInside: string | undefined;
}

/**
 * The folders into which this process recently put files, so that the next file there needs no lookup. This is only a
 * hint: the statement that uses it checks it under the drive's lock.
 */
class KnownFolders {
  private readonly folders = new Map<string, KnownFolder>();
  private readonly byId = new Map<string, KnownFolder>();

  folderWith(id: string): KnownFolder | undefined {
    return this.byId.get(id);
  }

  /** Undefined if the folder is not known, or if the request is conditional (If-Match). */
  spotOf(target: FileTarget): KnownSpot | undefined {
    const { names, fileName, pathOf, ifMatch } = target;
    if (ifMatch !== undefined) return undefined;
    const isFolder = pathOf === 'folder' || names.length === 0;
    const name = isFolder ? fileName : names.at(-1);
    if (name === undefined) return undefined;
    const folder = this.folders.get(keyOf(target, isFolder ? names : names.slice(0, -1)));
    return folder && { folder, name, nameInside: pathOf === 'either' && !isFolder ? fileName : undefined };
  }

  /** Remembers the folder of a file that was placed. */
  remember(target: FileTarget, file: Place, drive: Pick<Drive, 'number'>): void {
    const chain = file.chain.slice(0, -1);
    if (chain.length > maxLevels) return;
    const key = keyOf(target, file.names.slice(0, -1));
    const folder = { key, driveNumber: drive.number, place: new Place(chain) };
    keepBounded(this.folders, maxFolders, key, folder);
    keepBounded(this.byId, maxFolders, folder.place.itself.id, folder);
  }

  forget({ key, place }: KnownFolder): void {
    this.folders.delete(key);
    this.byId.delete(place.itself.id);
  }
}

function keyOf({ spaceId, containerId }: FileTarget, names: readonly string[]): string {
  return JSON.stringify([spaceId, containerId, ...names]);
}

/** One instance for each database. */
export const knownFoldersOf = modelsOf(() => new KnownFolders());
