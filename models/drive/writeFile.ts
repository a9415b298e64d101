import { Op, type Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Changer, noteAppChange } from '../apps/changes.ts';
import type { Placed } from './changes.ts';
import { driveContainerId, openRoot } from './containers.ts';
import type { Drive } from './drive.ts';
import type { DriveItem } from './driveItem.ts';
import { knownFoldersOf } from './knownFolders.ts';
import { driveModels } from './models.ts';
import { extendedName } from './names.ts';
import { linkOf, Place, placeOf } from './place.ts';
import type { ArrivedFile, FileTarget } from './placeFile.ts';
import { addItem, chooseName, openFolder } from './tree.ts';
import { indexWords } from './wordIndex.ts';

/** A program's new content of a file. */
export interface Write {
  spaceId: string;
  userId: string;
  by?: Changer | undefined;
  /** The folder of the file, and its name. */
  folderId: string;
  name: string;
  /** The file whose content the program has changed, and which version it changed. Undefined for a new file. */
  known?: { itemId: string; version: number } | undefined;
  /** What the name gets if another change was first. */
  conflictSuffix: string;
  /** The version that this writer wrote just before. It is replaced without being kept. */
  supersedes?: number | undefined;
}

export interface Written extends Placed {
  /** Another change was first, so the content is in a file of its own beside that. */
  isConflict: boolean;
  /** The file had this content already. What has arrived is not needed. */
  isRepeated: boolean;
}

/**
 * Places what a program has written. It is never refused because somebody else was first: then it gets a name of its
 * own, in the root of the drive if its folder is gone.
 */
export async function writeFile(
  write: Write,
  file: ArrivedFile,
  options: { keptVersions: number; quotaBytes: number; tx: Transaction },
): Promise<Written> {
  const { spaceId, userId, known } = write;
  const { keptVersions, tx } = options;
  const { Drive, DriveItem, DriveVersion } = driveModels(tx);
  const drive = await Drive.lock(spaceId, tx);
  const item = known && (await livingFile(write, known.itemId, tx));
  const { place: folder, isGone } = await folderOf(write, tx);
  const taken = item ?? (await DriveItem.childOf(folder.itself.id, write.name, tx));
  if (hasContentOf(taken, file)) return repeated(taken, file, false, tx);
  if (taken !== null && (await wasVersionOf(taken, item === undefined ? 0 : known?.version, file, tx))) {
    return { item: taken, place: await placeOf(tx, taken), isConflict: false, isRepeated: true };
  }
  const isConflict =
    item === undefined ? known !== undefined || taken !== null || isGone : item.version !== known?.version;
  const other = isConflict ? extendedName(write.name, write.conflictSuffix) : write.name;
  const before = isConflict ? await DriveItem.childOf(folder.itself.id, other, tx) : null;
  if (hasContentOf(before, file)) return repeated(before, file, true, tx);
  await keepContent(write, file, options);
  if (item !== undefined && !isConflict) {
    const supersedes = write.supersedes === item.version;
    await DriveVersion.replace(item, file.content, { userId, keptVersions, says: file.says, supersedes, tx });
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'text', file.text ?? '', tx);
    const place = await placeOf(tx, item);
    await noteIn(place, write, tx);
    return { item, place, isConflict: false, isRepeated: false };
  }
  const name = await chooseName(folder, other, before, 'rename', tx);
  return { ...(await addFile(drive, folder, { ...write, name }, file, tx)), isConflict, isRepeated: false };
}

function hasContentOf(item: DriveItem | null, { content }: ArrivedFile): item is DriveItem {
  return item?.sha256?.equals(content.sha256) === true;
}

/**
 * Whether a version after the one that was changed, or any of a file that was new, has the content. Then an earlier
 * request has brought it, whose program was killed before the answer, and the file was changed since.
 */
async function wasVersionOf(
  { id: itemId, version: present }: DriveItem,
  changed: number | undefined,
  { content: { sha256 } }: ArrivedFile,
  tx: Transaction,
): Promise<boolean> {
  if (changed === undefined || present <= changed + 1) return false;
  const where = { itemId, version: { [Op.gt]: changed }, sha256 };
  return (await driveModels(tx).DriveVersion.count({ where, transaction: tx })) > 0;
}

/** The file has the content already: the program wrote the same, or asks again after a lost answer. */
async function repeated(
  item: DriveItem,
  { says }: ArrivedFile,
  isConflict: boolean,
  tx: Transaction,
): Promise<Written> {
  const isNews =
    says !== undefined &&
    (says.isExecutable !== item.isExecutable || says.modifiedAt?.getTime() !== item.modifiedAt?.getTime());
  if (isNews) await item.change({ ...says }, tx);
  return { item, place: await placeOf(tx, item), isConflict, isRepeated: true };
}

async function addFile(
  drive: Drive,
  folder: Place,
  write: Write,
  { content, says, text }: ArrivedFile,
  tx: Transaction,
): Promise<Placed> {
  const { spaceId, userId, name } = write;
  const item = await addItem(drive, folder, { spaceId, kind: 'file', userId, content, says, name, text }, tx);
  const place = folder.below(item);
  if (!(await noteIn(place, write, tx))) knownFoldersOf(tx).remember(targetIn(folder, write), place, drive);
  return { item, place };
}

/** The target of a new file in a folder. */
export function targetIn({ containerId, names }: Place, { spaceId, userId, by, name }: Write): FileTarget {
  return { spaceId, userId, by, containerId, names, pathOf: 'folder', fileName: name, onConflict: 'error' };
}

/** Returns whether an app has changed. */
function noteIn({ chain }: Place, who: Write, tx: Transaction): Promise<boolean> {
  const above = chain.slice(0, -1).map(({ id }) => id);
  return noteAppChange(tx, above, who);
}

async function keepContent(
  { spaceId }: Write,
  { content, isReserved }: ArrivedFile,
  { quotaBytes, tx }: { quotaBytes: number; tx: Transaction },
): Promise<void> {
  const { DriveObject } = driveModels(tx);
  const { objectKey, size, sha256 } = content;
  if (isReserved) await DriveObject.keepReserved(objectKey, { spaceId, size, sha256, quotaBytes }, tx);
  else await DriveObject.keep(objectKey, sha256, tx);
}

/** The file, unless it is gone or in the trash. */
async function livingFile({ spaceId }: Write, itemId: string, tx: Transaction): Promise<DriveItem | undefined> {
  const item = await driveModels(tx).DriveItem.find(itemId, tx);
  if (item === null || item.spaceId !== spaceId || !item.isFile) return undefined;
  return isInDrive(await placeOf(tx, item)) ? item : undefined;
}

/** Whether the place is in the drive itself, not in the files of a thread, and not in the trash. */
export function isInDrive({ isLive, containerId }: Place): boolean {
  return isLive && containerId === driveContainerId;
}

/** The folder that the program knows, or the root of the drive if that is gone. */
async function folderOf(write: Write, tx: Transaction): Promise<{ place: Place; isGone: boolean }> {
  const found = await openFolder(write.spaceId, write.folderId, tx).catch((error: unknown) => {
    if (error instanceof DomainError) return undefined;
    throw error;
  });
  if (found !== undefined && isInDrive(found)) return { place: found, isGone: false };
  const root = await openRoot({ ...write, containerId: driveContainerId }, tx);
  return { place: new Place([linkOf(root)]), isGone: true };
}
