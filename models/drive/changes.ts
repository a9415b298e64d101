import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Changer, noteAppChange } from '../apps/changes.ts';
import { type On, transactionOf } from '../database/bound.ts';
import { type Database, transaction } from '../database/database.ts';
import type { DriveItem, WriterSays } from './driveItem.ts';
import { requireMatch } from './match.ts';
import { driveModels } from './models.ts';
import { joinPath } from './names.ts';
import { type Place, placeOf } from './place.ts';
import { isSaved, saveAsVersion } from './saveByRename.ts';
import { takeAlong } from './takeAlong.ts';
import {
  addItem,
  attach,
  type Container,
  chooseName,
  detach,
  makeFolders,
  type OnConflict,
  openFolder,
} from './tree.ts';
import { indexWords } from './wordIndex.ts';

/** The user who changes the tree, and the authority of the change. */
export interface Who {
  userId: string;
  by?: Changer | undefined;
}

/** An item with its place: the result of every change. */
export interface Placed {
  item: DriveItem;
  place: Place;
}

/** A folder by its id, or by its path. Missing folders of the path are made. */
export type FolderRef = { folderId: string } | { names: readonly string[] };

/**
 * Makes a folder, or a symlink if it has a target, with its missing parents if given a path. The same id again returns
 * the same item.
 */
export async function makeFolder(
  database: Database,
  fields: Container & {
    id: string;
    parent: FolderRef;
    name: string;
    onConflict: 'error' | 'rename';
    linkTarget?: string | undefined;
  },
): Promise<Placed> {
  return transaction(database, async (tx) => {
    const { Drive, DriveItem } = driveModels(tx);
    const { spaceId, userId, id, linkTarget } = fields;
    const drive = await Drive.lock(spaceId, tx);
    // An earlier attempt made it, but its answer was lost.
    if ((await DriveItem.count({ where: { id }, transaction: tx })) > 0) return openLiving(tx, spaceId, id);
    const parent =
      'folderId' in fields.parent
        ? await openFolder(spaceId, fields.parent.folderId, tx)
        : await makeFolders(drive, fields, fields.parent.names, tx);
    const taken = await DriveItem.childOf(parent.itself.id, fields.name, tx);
    const name = await chooseName(parent, fields.name, taken, fields.onConflict, tx);
    const own = linkTarget === undefined ? { kind: 'folder' as const } : { kind: 'symlink' as const, linkTarget };
    const item = await addItem(drive, parent, { spaceId, id, ...own, name, userId }, tx);
    const made = { item, place: parent.below(item) };
    if (linkTarget !== undefined) await noteChange(tx, [made.place], fields);
    return made;
  });
}

/** A write in the transaction of the change, so that it exists exactly when the change does. */
export type AlsoIn = (tx: Transaction, placed: Placed) => Promise<void>;

/** Gives an item another name, another folder, or both. One row changes, whatever the size of the subtree. */
export async function moveItem(
  database: Database,
  change: {
    itemId: string;
    spaceId: string;
    userId: string;
    by?: Changer | undefined;
    parent?: { folderId: string } | (Container & { names: readonly string[] }) | undefined;
    name?: string | undefined;
    onConflict: OnConflict;
    /** Whether an empty folder may replace an empty folder, as programs rename. */
    replacesFolder?: boolean;
    /** Set if a file that was just made may become the next version of the one that it replaces. */
    asVersion?: { keptVersions: number };
    ifMatch?: string | undefined;
  },
  also?: AlsoIn,
): Promise<Placed> {
  return transaction(database, async (tx) => {
    const { Drive, DriveItem } = driveModels(tx);
    const { spaceId } = change;
    const drive = await Drive.lock(spaceId, tx);
    const { item, place } = await openLiving(tx, spaceId, change.itemId);
    requireMatch(item, change.ifMatch);
    if (item.isRoot) throw isRoot();
    const target =
      change.parent === undefined
        ? await openFolder(spaceId, item.parentId, tx)
        : 'folderId' in change.parent
          ? await openFolder(spaceId, change.parent.folderId, tx)
          : await makeFolders(drive, change.parent, change.parent.names, tx);
    if (target.isInside(item.id)) {
      throw new DomainError('conflict', 'MOVE_INTO_ITSELF', 'A folder cannot be moved into itself.');
    }
    const wanted = change.name ?? item.name;
    const holder = await DriveItem.childOf(target.itself.id, wanted, tx);
    const taken = holder?.id === item.id ? null : holder;
    if (change.asVersion !== undefined && taken !== null && (await isSaved(item, taken, change.userId, tx))) {
      const replaced = { item: taken, place: target.below(taken) };
      await saveAsVersion(item, taken, { ...change, ...change.asVersion, driveNumber: drive.number, tx });
      await noteChange(tx, [place, replaced.place], change);
      return replaced;
    }
    if (taken !== null && change.onConflict === 'replace')
      await makeWay(item, { item: taken, place: target.below(taken) }, change, tx);
    const name = await chooseName(
      target,
      wanted,
      change.onConflict === 'replace' ? null : taken,
      change.onConflict,
      tx,
    );
    const isMoved = target.itself.id !== place.itself.parentId;
    if (isMoved) await detach(item, tx);
    await item.change({ ...DriveItem.named(name), parentId: target.itself.id }, tx);
    if (isMoved) await attach(item, target, tx);
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'name', name, tx);
    const moved = { item, place: target.below(item) };
    await noteChange(tx, [place, moved.place], change);
    await also?.(tx, moved);
    return moved;
  });
}

/** Replacing by a move puts the replaced item into the trash. Only a file can replace, and only a file. */
async function makeWay(
  item: DriveItem,
  taken: Placed,
  who: Who & { replacesFolder?: boolean },
  tx: Transaction,
): Promise<void> {
  const areFolders = item.kind === 'folder' && taken.item.kind === 'folder';
  if (who.replacesFolder === true && areFolders) requireEmpty(taken.item);
  else if (!isLeaf(item) || !isLeaf(taken.item)) {
    throw new DomainError(
      'conflict',
      'NAME_TAKEN',
      'An item of this name exists. Only a file can replace it, and only if it is a file.',
    );
  }
  await intoTrash(taken, who, tx);
}

const isLeaf = ({ kind }: DriveItem) => kind === 'file' || kind === 'symlink';

/** Throws 409 `NOT_EMPTY`. */
function requireEmpty({ childCount }: DriveItem): void {
  if (childCount > 0) throw new DomainError('conflict', 'NOT_EMPTY', 'The folder is not empty.');
}

/** Puts an item, with everything below it, into the trash of its container. Throws 409 `NOT_EMPTY` if it should. */
export async function trashItem(
  database: Database,
  change: {
    itemId: string;
    spaceId: string;
    onlyIfEmpty?: boolean;
    /** What the user has removed from the folder since then goes with it: see `takeAlong`. */
    removedSince?: Date | undefined;
    ifMatch?: string | undefined;
  } & Who,
  also?: AlsoIn,
): Promise<Placed> {
  return transaction(database, async (tx) => {
    await driveModels(tx).Drive.lock(change.spaceId, tx);
    const found = await openLiving(tx, change.spaceId, change.itemId);
    requireMatch(found.item, change.ifMatch);
    if (change.onlyIfEmpty === true) requireEmpty(found.item);
    if (change.removedSince !== undefined) await takeAlong(found, { ...change, since: change.removedSince }, tx);
    await intoTrash(found, change, tx);
    await also?.(tx, found);
    return found;
  });
}

export async function intoTrash({ item, place }: Placed, who: Who, tx: Transaction): Promise<void> {
  if (item.isRoot) throw isRoot();
  await detach(item, tx);
  const trashed = { live: null, trashedAt: new Date(), trashedBy: who.userId, trashedFrom: place.containerId };
  await item.change(trashed, tx);
  await noteChange(tx, [place], who);
}

/** Changes what the writer of a file says about its content. */
export async function changeAttributes(
  database: Database,
  { itemId, spaceId, says, ...who }: { itemId: string; spaceId: string; says: Partial<WriterSays> } & Who,
): Promise<Placed> {
  return transaction(database, async (tx) => {
    await driveModels(tx).Drive.lock(spaceId, tx);
    const found = await openLiving(tx, spaceId, itemId);
    await found.item.change(says, tx);
    if (says.isExecutable !== undefined) await noteChange(tx, [found.place], who);
    return found;
  });
}

/** Brings an item back from the trash, to its former folder or to another one. */
export async function restoreItem(
  database: Database,
  change: {
    itemId: string;
    spaceId: string;
    folderId?: string | undefined;
    name?: string | undefined;
    onConflict: 'error' | 'rename';
  } & Who,
): Promise<Placed> {
  return transaction(database, async (tx) => {
    const { Drive, DriveItem } = driveModels(tx);
    const { spaceId } = change;
    const drive = await Drive.lock(spaceId, tx);
    const item = await openTrashed(tx, spaceId, change.itemId);
    const folder = await openFolder(spaceId, change.folderId ?? item.parentId, tx).catch((error: unknown) => {
      if (change.folderId !== undefined) throw error;
      throw new DomainError(
        'conflict',
        'FOLDER_GONE',
        'The original folder of the item is in the trash, or gone. Restore it first, or name another folder.',
      );
    });
    const wanted = change.name ?? item.name;
    const taken = await DriveItem.childOf(folder.itself.id, wanted, tx);
    const name = await chooseName(folder, wanted, taken, change.onConflict, tx);
    const back = { live: 1, trashedAt: null, trashedBy: null, trashedFrom: null };
    await item.change({ ...back, ...DriveItem.named(name), parentId: folder.itself.id }, tx);
    await attach(item, folder, tx);
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'name', name, tx);
    const restored = { item, place: folder.below(item) };
    await noteChange(tx, [restored.place], change);
    return restored;
  });
}

/** Notes the change for the apps above these places. */
export async function noteChange(tx: Transaction, places: readonly Place[], who: Who): Promise<void> {
  const above = places.flatMap(({ chain }) => chain.slice(0, -1).map(({ id }) => id));
  await noteAppChange(tx, [...new Set(above)], who);
}

/** An item that is not in the trash and not below a trashed item. */
export async function openLiving(on: On, spaceId: string, itemId: string): Promise<Placed> {
  const item = await driveModels(on).DriveItem.find(itemId, transactionOf(on));
  if (item === null || item.spaceId !== spaceId) throw notFound('item');
  const place = await placeOf(on, item);
  if (!place.isLive) throw notFound('item');
  return { item, place };
}

/** An item that was itself put into the trash. Throws 409 `NOT_IN_TRASH` otherwise. */
async function openTrashed(on: On, spaceId: string, itemId: string): Promise<DriveItem> {
  const item = await driveModels(on).DriveItem.find(itemId, transactionOf(on));
  if (item === null || item.spaceId !== spaceId) throw notFound('item');
  if (item.trashedAt === null) throw new DomainError('conflict', 'NOT_IN_TRASH', 'The item is not in the trash.');
  return item;
}

/** An item that is not in the trash, or was itself put there. An item below a trashed one is not found. */
export async function openAny(on: On, spaceId: string, itemId: string): Promise<Placed> {
  const item = await driveModels(on).DriveItem.find(itemId, transactionOf(on));
  if (item === null || item.spaceId !== spaceId) throw notFound('item');
  const place = await placeOf(on, item);
  if (item.trashedAt === null && !place.isLive) throw notFound('item');
  return { item, place };
}

function isRoot(): DomainError {
  return new DomainError('conflict', 'IS_ROOT', `The root ${joinPath([])} can neither be moved nor removed.`);
}
