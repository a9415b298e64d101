import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import type { DriveItem } from '../drive/driveItem.ts';
import { driveModels } from '../drive/models.ts';

const maxFiles = 5_000;
const maxBytes = 512 * 1_048_576;
const pageSize = 500;

/**
 * The files of a folder and its subfolders, by their paths below it. Repositories and apps in it are left out. Throws
 * 422 `APP_TOO_LARGE`.
 */
export async function filesBelow(
  database: Database,
  { itemId }: { itemId: string },
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
      if (files.size > maxFiles || open.length > maxFiles || bytes > maxBytes) throw tooLarge();
      after = children.at(-1);
      if (children.length < pageSize) break;
    }
  }
  return files;
}

function tooLarge(): DomainError {
  const detail = `The folder of an app can have at most ${maxFiles} files and ${maxBytes / 1_048_576} MiB. Use a repository instead.`;
  return new DomainError('unprocessable', 'APP_TOO_LARGE', detail);
}
