import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Changer } from '../apps/changes.ts';
import { execute } from '../database/sql.ts';
import { openRoot, requireOwner } from './containers.ts';
import type { Drive } from './drive.ts';
import type { DriveItem, NewItem } from './driveItem.ts';
import { driveModels } from './models.ts';
import { checkName, maxDepth, nameKey, numberedName, tooDeep } from './names.ts';
import { linkOf, Place, placeOf } from './place.ts';
import { indexNewItems } from './wordIndex.ts';

/**
 * The steps of changes to a tree. Each is part of a transaction that holds the drive's lock, so it may read first and
 * then write.
 */

/** What to do if the name is taken. */
export type OnConflict = 'error' | 'rename' | 'replace';

export interface Container {
  spaceId: string;
  containerId: string;
  userId: string;
  /** The authority of the change. Without it, a change to an app waits for approval. */
  by?: Changer | undefined;
}

/** A folder of the space that is not in the trash, with its place. Throws 404 otherwise. */
export async function openFolder(spaceId: string, folderId: string, tx: Transaction): Promise<Place> {
  const folder = await driveModels(tx).DriveItem.find(folderId, tx);
  if (folder === null || folder.spaceId !== spaceId) throw notFound('folder');
  const place = await placeOf(tx, folder);
  if (!place.isLive) throw notFound('folder');
  return requireFolder(place);
}

/** The folder at a path. Missing folders are made. */
export async function makeFolders(
  drive: Drive,
  container: Container,
  names: readonly string[],
  tx: Transaction,
): Promise<Place> {
  const root = await openRoot(container, tx);
  let place = new Place([linkOf(root)]);
  for (const [i, name] of names.entries()) {
    const { spaceId, userId } = container;
    const found = await driveModels(tx).DriveItem.childOf(place.itself.id, name, tx);
    // Set the final height now. Otherwise each level below would raise all levels above it, one by one.
    const height = names.length - i;
    const folder = found ?? (await addItem(drive, place, { spaceId, kind: 'folder', name, userId, height }, tx));
    place = requireFolder(place.below(folder));
  }
  return place;
}

/** Like `makeFolders`. `there` is the folder if the caller already found the whole path, which is the usual case. */
export async function openFolders(
  drive: Drive,
  container: Container,
  { names, there }: { names: readonly string[]; there: Place | undefined },
  tx: Transaction,
): Promise<Place> {
  if (there === undefined) return makeFolders(drive, container, names, tx);
  await requireOwner(container, tx);
  return requireFolder(there);
}

/** Adds an item to a folder. The caller knows that the name is free. `text` is a small text file's content. */
export async function addItem(
  drive: Drive,
  folder: Place,
  { text = '', ...fields }: Omit<NewItem, 'parentId'> & { text?: string | undefined },
  tx: Transaction,
): Promise<DriveItem> {
  checkName(fields.name);
  const item = await driveModels(tx).DriveItem.make({ ...fields, parentId: folder.itself.id }, tx);
  await attach(item, folder, tx);
  await indexNewItems([{ driveNumber: drive.number, itemNumber: item.number, name: item.name, text }], tx);
  return item;
}

/** Counts an item in at its new parent, and refuses it if the tree would become too deep. */
export async function attach(item: DriveItem, folder: Place, tx: Transaction): Promise<void> {
  const { DriveItem } = driveModels(tx);
  if (folder.depth + 1 + item.height > maxDepth) throw tooDeep();
  await execute(tx, 'UPDATE drive_items SET child_count = child_count + 1 WHERE id = ?', [folder.itself.id]);
  // Go up until a folder already has this height. Usually the first one does.
  for (let above = 1; above < folder.chain.length + 1; above++) {
    const link = folder.chain.at(-above);
    const height = item.height + above;
    if (link === undefined || link.height >= height) return;
    await DriveItem.update({ height }, { where: { id: link.id }, transaction: tx });
    link.height = height;
  }
}

export async function detach(item: DriveItem, tx: Transaction): Promise<void> {
  await driveModels(tx).DriveItem.decrement('childCount', { where: { id: item.parentId }, transaction: tx });
}

/** The name that an item gets in a folder. `taken` is the item that has the wanted name now. */
export async function chooseName(
  folder: Place,
  name: string,
  taken: DriveItem | null,
  onConflict: OnConflict,
  tx: Transaction,
): Promise<string> {
  checkName(name);
  if (taken === null) return name;
  if (onConflict === 'rename') return freeName(folder.itself.id, name, tx);
  throw new DomainError('conflict', 'NAME_TAKEN', 'The folder already has an item of this name.', {
    errors: [{ pointer: 'name', detail: 'is taken' }],
  });
}

const namesPerLook = 50;

/** The candidates leap ahead when many are taken, so that the ten-thousandth copy costs little more than the first. */
async function freeName(folderId: string, name: string, tx: Transaction): Promise<string> {
  const { DriveItem } = driveModels(tx);
  for (let from = 2; ; from *= 4) {
    const candidates = Array.from({ length: namesPerLook }, (_, i) => numberedName(name, from + i));
    const taken = await DriveItem.findAll({
      where: { parentId: folderId, nameKey: candidates.map(nameKey), live: 1 },
      attributes: ['nameKey'],
      transaction: tx,
    });
    const keys = new Set(taken.map((item) => item.nameKey.toString('hex')));
    const free = candidates.find((candidate) => !keys.has(nameKey(candidate).toString('hex')));
    if (free !== undefined) return free;
  }
}

function requireFolder(place: Place): Place {
  if (place.itself.kind === 'folder') return place;
  throw new DomainError('conflict', 'NOT_A_FOLDER', 'An item on the path is not a folder.');
}
