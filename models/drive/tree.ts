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

/** What to do where a name is already taken. */
export type OnConflict = 'error' | 'rename' | 'replace';

export interface Container {
  spaceId: string;
  containerId: string;
  userId: string;
  /** With what authority it is changed; without it, whatever an app runs of it waits. */
  by?: Changer | undefined;
}

/** A living folder of the space by its id, with its place. */
export async function openFolder(spaceId: string, folderId: string, tx: Transaction): Promise<Place> {
  const folder = await driveModels(tx).DriveItem.find(folderId, tx);
  if (folder === null || folder.spaceId !== spaceId) throw notFound('folder');
  const place = await placeOf(tx, folder);
  if (!place.isLive) throw notFound('folder');
  return requireFolder(place);
}

/** The folder at a path, for something to be put into it; what is missing of it is made. */
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
    // It is made as high as it will be: otherwise each level below would raise all above it, one by one.
    const height = names.length - i;
    const folder = found ?? (await addItem(drive, place, { spaceId, kind: 'folder', name, userId, height }, tx));
    place = requireFolder(place.below(folder));
  }
  return place;
}

/** The same where it is known what of the path is `there`: all of it, mostly. */
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

/** Adds an item to a folder. The name is known to be free. `text` is what a file says, if it is a small text. */
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

/** Counts an item in at its new parent, and keeps the tree from growing too deep. */
export async function attach(item: DriveItem, folder: Place, tx: Transaction): Promise<void> {
  const { DriveItem } = driveModels(tx);
  if (folder.depth + 1 + item.height > maxDepth) throw tooDeep();
  await execute(tx, 'UPDATE drive_items SET child_count = child_count + 1 WHERE id = ?', [folder.itself.id]);
  // Upwards until a folder knows of that many levels below it already: mostly the first one does.
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

/** The name that an item gets in a folder where `taken` may have it already. */
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
  throw new DomainError('conflict', 'NAME_TAKEN', 'The folder has an item of this name already.', {
    errors: [{ pointer: 'name', detail: 'is taken' }],
  });
}

const namesPerLook = 50;

/** Leaps ahead where many are taken, so that the ten-thousandth copy costs little more than the first. */
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

export function requireFolder(place: Place): Place {
  if (place.itself.kind === 'folder') return place;
  throw new DomainError('conflict', 'NOT_A_FOLDER', 'An item on the path is not a folder.');
}
