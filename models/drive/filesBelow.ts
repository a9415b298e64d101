import type { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';

const maxFiles = 5_000;
const maxBytes = 512 * 1_048_576;
const pageSize = 500;

/**
 * The files of a folder and its subfolders, by their paths below it. Repositories, apps and symlinks in it are left out. Throws
 * what `tooLarge` returns for a folder with more files than can be copied to a computer.
 */
export async function filesBelow(
  database: Database,
  { itemId }: { itemId: string },
  tooLarge: (most: string) => DomainError,
): Promise<Map<string, { objectKey: string; sha256: string }>> {
  const { DriveItem } = driveModels(database);
  const files = new Map<string, { objectKey: string; sha256: string }>();
  let bytes = 0;
  const open = [{ id: itemId, path: '' }];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (let after: DriveItem | undefined; ; ) {
      const children: DriveItem[] = await DriveItem.children(folder.id, pageSize, after);
      for (const { id, kind, name, content } of children) {
        const path = `${folder.path}${name}`;
        if (kind === 'folder') open.push({ id, path: `${path}/` });
        if (content === undefined) continue;
        bytes += content.size;
        files.set(path, { objectKey: content.objectKey, sha256: content.sha256.toString('hex') });
      }
      if (files.size > maxFiles || open.length > maxFiles || bytes > maxBytes) {
        throw tooLarge(`at most ${maxFiles} files and ${maxBytes / 1_048_576} MiB`);
      }
      after = children.at(-1);
      if (children.length < pageSize) break;
    }
  }
  return files;
}
