import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { noteAppChange } from '../apps/changes.ts';
import { type On, transactionOf } from '../database/bound.ts';
import type { Content, DriveItem, WriterSays } from './driveItem.ts';
import { knownFoldersOf } from './knownFolders.ts';
import { requireMatch } from './match.ts';
import { driveModels } from './models.ts';
import { itemsAlong, linkOf, Place } from './place.ts';
import { addItem, type Container, chooseName, type OnConflict, openFolders } from './tree.ts';
import { indexWords } from './wordIndex.ts';

export interface FileTarget extends Container {
  names: readonly string[];
  /** Whether the path names the file itself, the folder that receives it, or either: then the existing item decides. */
  pathOf: 'file' | 'folder' | 'either';
  /** The file's name within a folder. */
  fileName: string;
  onConflict: OnConflict;
  ifMatch?: string | undefined;
}

/** A file whose bytes are in the object store, but which is not in the tree yet. */
export interface ArrivedFile {
  content: Content;
  /** The complete text, if the file is a small text. */
  text: string | undefined;
  /** The object comes from the reserve, so its bytes are counted when the file is placed. */
  isReserved?: boolean;
  /** The content type by the sender's file name. Used if the path turns out to be a folder's, not the file's own. */
  contentTypeInside?: string | undefined;
  says?: WriterSays | undefined;
}

/**
 * Refuses early what would be refused after the bytes have arrived. This guarantees nothing: the target is checked
 * again under the drive's lock when the file is placed. Returns the name that the file will have.
 */
export async function previewTarget(on: On, target: FileTarget): Promise<string> {
  const { found, name } = await lookAt(on, target);
  requireReplaceable(found, target);
  return name;
}

/** Puts a file into the tree: as a new item, or as the next content of the existing one. */
export async function placeFile(
  target: FileTarget,
  file: ArrivedFile,
  options: { keptVersions: number; quotaBytes: number; tx: Transaction },
): Promise<{ item: DriveItem; place: Place }> {
  const { spaceId, userId, onConflict } = target;
  const { keptVersions, quotaBytes, tx } = options;
  const { Drive, DriveObject, DriveVersion } = driveModels(tx);
  const drive = await Drive.lock(spaceId, tx);
  const { folder, there, name, found, isInside } = await lookAt(tx, target);
  const { contentTypeInside } = file;
  const content =
    isInside && contentTypeInside !== undefined ? { ...file.content, contentType: contentTypeInside } : file.content;
  const parent = await openFolders(drive, target, { names: folder, there }, tx);
  requireReplaceable(found, target);
  const { objectKey, size, sha256 } = content;
  if (file.isReserved) await DriveObject.keepReserved(objectKey, { spaceId, size, sha256, quotaBytes }, tx);
  else await DriveObject.keep(objectKey, sha256, tx);
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
          content,
          says: file.says,
          name: await chooseName(parent, name, found, onConflict, tx),
          text: file.text,
        },
        tx,
      );
  if (isReplaced) {
    await DriveVersion.replace(item, content, { userId, keptVersions, says: file.says, tx });
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'text', file.text ?? '', tx);
  }
  const place = parent.below(item);
  const isOfApp = await noteAppChange(
    tx,
    parent.chain.map(({ id }) => id),
    target,
  );
  // The transaction may still be rolled back, which is fine: the memory is only a hint. A folder in an app is not
  // remembered, because only this path notes changes of apps.
  if (!isOfApp) knownFoldersOf(tx).remember(target, place, drive);
  return { item, place };
}

/** Where a file would go, and the item that is there now. */
interface Spot {
  /** The path of its folder. */
  folder: string[];
  /** The folder, if the whole path exists. */
  there: Place | undefined;
  name: string;
  /** The item that has the file's name. */
  found: DriveItem | null;
  /** The path could have been the file's own, but names an existing folder. */
  isInside: boolean;
}

async function lookAt(on: On, target: FileTarget): Promise<Spot> {
  const { names, fileName, pathOf } = target;
  const isFolder = pathOf === 'folder' || names.length === 0;
  const path = isFolder ? [...names, fileName] : [...names];
  const along = await itemsAlong(on, { ...target, names: path });
  const last = along[path.length];
  if (pathOf === 'either' && !isFolder && last?.kind === 'folder') {
    const found = await driveModels(on).DriveItem.childOf(last.id, fileName, transactionOf(on));
    return { folder: path, there: new Place(along.map(linkOf)), name: fileName, found, isInside: true };
  }
  const above = along.slice(0, path.length);
  return {
    folder: path.slice(0, -1),
    there: above.length === path.length ? new Place(above.map(linkOf)) : undefined,
    name: path.at(-1) ?? fileName,
    found: last ?? null,
    isInside: false,
  };
}

function requireReplaceable(found: DriveItem | null, { onConflict, ifMatch }: FileTarget): void {
  requireMatch(found, ifMatch);
  if (found === null || onConflict === 'rename') return;
  if (onConflict === 'replace' && found.isFile) return;
  throw new DomainError('conflict', 'NAME_TAKEN', 'An item of this name already exists here.', {
    errors: [{ pointer: 'path', detail: 'is taken' }],
  });
}
