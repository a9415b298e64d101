import type { Transaction } from 'sequelize';
import type { On } from '../bound.ts';
import { DomainError } from '../errors.ts';
import type { Content, DriveItem } from './driveItem.ts';
import { requireMatch } from './match.ts';
import { driveModels } from './models.ts';
import { findByPath, type Place } from './place.ts';
import { addItem, type Container, chooseName, makeFolders, type OnConflict } from './tree.ts';
import { indexWords } from './wordIndex.ts';

/** Where a file is to go. */
export interface FileTarget extends Container {
  names: readonly string[];
  /** Whose path it is: the file's own, that of a folder it goes into, or whichever is there. */
  pathOf: 'file' | 'folder' | 'either';
  /** Its name within a folder. */
  fileName: string;
  onConflict: OnConflict;
  ifMatch?: string | undefined;
}

/** A file whose bytes are in the object store, but which is not in the tree yet. */
export interface ArrivedFile {
  content: Content;
  /** The whole of a small text. */
  text: string | undefined;
}

/**
 * Refuses early what would be refused once the bytes have arrived. It guarantees nothing: the target is checked again,
 * under the drive's lock, when the file is placed. Returns the name that the file is to have.
 */
export async function previewTarget(on: On, target: FileTarget): Promise<string> {
  const { folder, name } = await splitTarget(on, target);
  const found = await findByPath(on, { ...target, names: [...folder, name] });
  requireReplaceable(found?.item ?? null, target);
  return name;
}

/** Puts a file into the tree: a new item, or the next content of the one that is there. */
export async function placeFile(
  target: FileTarget,
  file: ArrivedFile,
  options: { keptVersions: number; tx: Transaction },
): Promise<{ item: DriveItem; place: Place }> {
  const { spaceId, userId, onConflict } = target;
  const { keptVersions, tx } = options;
  const { Drive, DriveItem, DriveObject, DriveVersion } = driveModels(tx);
  const drive = await Drive.lock(spaceId, tx);
  const { folder, name } = await splitTarget(tx, target);
  const parent = await makeFolders(drive, target, folder, tx);
  const found = await DriveItem.childOf(parent.itself.id, name, tx);
  requireReplaceable(found, target);
  await DriveObject.keep(file.content.objectKey, tx);
  const isReplaced = found !== null && onConflict === 'replace';
  const item = isReplaced
    ? found
    : await addItem(
        drive,
        parent,
        {
          spaceId,
          kind: 'file',
          userId,
          content: file.content,
          name: await chooseName(parent, name, found, onConflict, tx),
        },
        tx,
      );
  if (isReplaced) await DriveVersion.replace(item, file.content, { userId, keptVersions, tx });
  const indexed = { driveNumber: drive.number, itemNumber: item.number, isNew: !isReplaced };
  await indexWords(indexed, 'text', file.text ?? '', tx);
  return { item, place: parent.below(item) };
}

async function splitTarget(on: On, target: FileTarget): Promise<{ folder: string[]; name: string }> {
  const { names, fileName, pathOf } = target;
  const isFolder =
    pathOf === 'folder' || (pathOf === 'either' && (names.length === 0 || (await isExistingFolder(on, target))));
  return isFolder
    ? { folder: [...names], name: fileName }
    : { folder: names.slice(0, -1), name: names.at(-1) ?? fileName };
}

async function isExistingFolder(on: On, target: FileTarget): Promise<boolean> {
  const found = await findByPath(on, target);
  return found?.item.kind === 'folder';
}

function requireReplaceable(found: DriveItem | null, { onConflict, ifMatch }: FileTarget): void {
  requireMatch(found, ifMatch);
  if (found === null || onConflict === 'rename') return;
  if (onConflict === 'replace' && found.isFile) return;
  throw new DomainError('conflict', 'NAME_TAKEN', 'There is an item of this name already.', {
    errors: [{ pointer: 'path', detail: 'is taken' }],
  });
}
