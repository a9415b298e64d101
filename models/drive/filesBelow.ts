import type { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';

/** How much there is to copy: files, the folders in which they are, the bytes in them, and those of their paths. */
export interface Copied {
  files: number;
  folders: number;
  bytes: number;
  pathBytes: number;
}

const mebibyte = 1_048_576;
const most: Copied = { files: 5_000, folders: 5_000, bytes: 512 * mebibyte, pathBytes: 2 * mebibyte };
const pageSize = 500;

/** What is too much to copy, for people. Undefined if nothing is. */
export function excessOf(copied: Copied, most: Copied): string | undefined {
  if (copied.files > most.files || copied.bytes > most.bytes) {
    return `at most ${most.files} files and ${most.bytes / mebibyte} MiB`;
  }
  if (copied.folders > most.folders) return `at most ${most.folders} folders`;
  return copied.pathBytes > most.pathBytes ? `paths of ${most.pathBytes / mebibyte} MiB together` : undefined;
}

/**
 * The files of a folder and its subfolders, by their paths below it, and how much that is. Repositories, apps and symlinks
 * in it are left out. Throws what `tooLarge` returns for a folder with more than can be copied to a computer.
 */
export async function filesBelow(
  database: Database,
  { itemId }: { itemId: string },
  tooLarge: (most: string) => DomainError,
): Promise<{ files: Map<string, { objectKey: string; sha256: string }>; copied: Copied }> {
  const { DriveItem } = driveModels(database);
  const files = new Map<string, { objectKey: string; sha256: string }>();
  const copied = { files: 0, folders: 0, bytes: 0, pathBytes: 0 };
  const open = [{ id: itemId, path: '' }];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    copied.folders += 1;
    for (let after: DriveItem | undefined; ; ) {
      const children: DriveItem[] = await DriveItem.children(folder.id, pageSize, after);
      for (const { id, kind, name, content } of children) {
        const path = `${folder.path}${name}`;
        if (kind === 'folder') open.push({ id, path: `${path}/` });
        if (content === undefined) continue;
        copied.files += 1;
        copied.bytes += content.size;
        copied.pathBytes += Buffer.byteLength(path);
        files.set(path, { objectKey: content.objectKey, sha256: content.sha256.toString('hex') });
      }
      const excess = excessOf({ ...copied, folders: copied.folders + open.length }, most);
      if (excess !== undefined) throw tooLarge(excess);
      after = children.at(-1);
      if (children.length < pageSize) break;
    }
  }
  return { files, copied };
}
