import { DomainError, notFound } from '../../../base/errors.ts';
import { createFreshCache } from '../../../base/freshCache.ts';
import type { DriveBackend, DriveEntry } from '../../../integrations/computers/drives/backend.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { DriveAuthority } from '../../../models/computers/driveAuthority.ts';
import {
  changeAttributes,
  makeFolder,
  moveItem,
  openAny,
  openLiving,
  type Placed,
  trashItem,
} from '../../../models/drive/changes.ts';
import { driveContainerId, findRoot } from '../../../models/drive/containers.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { changesSince, revisionsOf } from '../../../models/drive/feed.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { isSavedAs } from '../../../models/drive/saveByRename.ts';
import { contentOf } from '../../../models/drive/versions.ts';
import { isInDrive, type Written } from '../../../models/drive/writeFile.ts';
import { installationOf } from '../../../models/installation/installation.ts';
import type { CommonDeps } from '../../deps.ts';
import { DriveAuthorities } from './authorities.ts';
import { DriveWatch } from './driveWatch.ts';
import { entriesOf, timeOf } from './entries.ts';
import { FileWriter } from './fileWriter.ts';

const pageSize = 5_000;
const itemId = /^itm_[0-9A-HJKMNP-TV-Z]{26}$/;
const maxTargetBytes = 4_095;
/** A revision that no drive has reached. A reader that has it forgets what it knows. */
const future = Number.MAX_SAFE_INTEGER;

type Deps = Pick<CommonDeps, 'config' | 'database' | 'logger'> & { storage: ObjectStore };

/** The drives of spaces for the computers of this host. Changes are made as the person who made the computer. */
export function createDriveBackend(deps: Deps): DriveBackend {
  const { config, database, storage } = deps;
  const authorities = new DriveAuthorities(database);
  const watch = new DriveWatch(deps);
  const writer = new FileWriter(deps);
  const { quotaBytes, maxFileBytes } = config.drive;
  // It changes by a restore, during which no worker runs.
  const epochs = createFreshCache(async () => (await installationOf(database)).identity, {
    maxAgeMs: Number.POSITIVE_INFINITY,
  });
  const epochOf = () => epochs.get('');
  const freeOf = (usedBytes: number) => (quotaBytes === 0 ? null : Math.max(0, quotaBytes - usedBytes));

  async function entryOf(item: DriveItem): Promise<DriveEntry> {
    const [entry] = await entriesOf(database, [item]);
    if (entry === undefined) throw notFound('item');
    return entry;
  }

  /** The item, if it is in the drive of the space. One in the trash may still be open in a program. */
  async function open({ spaceId }: DriveAuthority, id: string, how: typeof openLiving = openLiving): Promise<Placed> {
    const found = await how(database, spaceId, id);
    if (found.place.containerId !== driveContainerId) throw notFound('item');
    return found;
  }

  async function openFolder(authority: DriveAuthority, id: string): Promise<DriveItem> {
    const { item } = await open(authority, id);
    if (item.kind !== 'folder') throw new DomainError('conflict', 'NOT_A_FOLDER', 'The item is not a folder.');
    return item;
  }

  /** The file of which an item became a version by an earlier attempt at the same rename. */
  async function savedAs(
    id: string,
    { spaceId, parentId, name }: { spaceId: string; parentId: string; name: string },
  ): Promise<DriveItem | undefined> {
    const { DriveItem } = driveModels(database);
    const [item, there] = await Promise.all([DriveItem.findOne({ where: { id } }), DriveItem.childOf(parentId, name)]);
    if (item === null || there === null || item.spaceId !== spaceId || !isSavedAs(item, there)) return undefined;
    return there;
  }

  /** Makes a change, and tells the other computers of this host. */
  async function changed(work: Promise<Pick<Placed, 'item'>>): Promise<{ item: DriveEntry }> {
    const { item } = await work;
    watch.tell();
    return { item: await entryOf(item) };
  }

  return {
    async root(computerId) {
      const { spaceId, userId, access } = await authorities.now(computerId);
      const epoch = await epochOf();
      // Read before the item: what changes meanwhile is told later.
      const { revision = 0, usedBytes = 0 } = (await driveModels(database).Drive.findByPk(spaceId)) ?? {};
      const root = await findRoot(database, { spaceId, containerId: driveContainerId, userId: userId ?? spaceId });
      return { item: await entryOf(root), epoch, revision, access, freeBytes: freeOf(usedBytes), maxFileBytes };
    },

    async children(computerId, folderId, after) {
      const authority = await authorities.toRead(computerId);
      const { spaceId } = authority;
      const revision = (await revisionsOf(database, [spaceId])).get(spaceId) ?? 0;
      const folder = await openFolder(authority, folderId);
      const position = after === undefined ? undefined : positionOf(after);
      const children = await driveModels(database).DriveItem.children(folder.id, pageSize + 1, position);
      const items = children.slice(0, pageSize);
      const last = items.at(-1);
      const next = children.length > pageSize && last !== undefined ? textOf(last) : null;
      return { items: await entriesOf(database, items), next, revision };
    },

    async content(computerId, id, version) {
      const authority = await authorities.toRead(computerId);
      const { item } = await open(authority, id, openAny);
      const { objectKey, size } = await contentOf(database, item, version);
      const lengthOf = (range?: { start: number; end: number }) => (range ? range.end - range.start + 1 : size);
      return { size, open: (range) => storage.open(objectKey, lengthOf(range), range) };
    },

    async write(computerId, write, bytes) {
      const authority = await authorities.toSend(computerId);
      const written = await writer.write(authority, write, bytes);
      return { ...(await changed(Promise.resolve(written))), conflict: written.isConflict };
    },

    async writeSmall(computerId, files) {
      const authority = await authorities.toSend(computerId);
      const outcomes = await writer.writeSmall(authority, files);
      watch.tell();
      const written = outcomes.filter((outcome): outcome is Written => !(outcome instanceof Error));
      const entries = await entriesOf(
        database,
        written.map(({ item }) => item),
      );
      return outcomes.map((outcome) => {
        if (outcome instanceof Error) return outcome;
        const item = entries[written.indexOf(outcome)];
        return item === undefined ? notFound('item') : { item, conflict: outcome.isConflict };
      });
    },

    async make(computerId, { id, parentId, name, target }) {
      const authority = await authorities.toWrite(computerId);
      if (!itemId.test(id)) throw new DomainError('unprocessable', 'INVALID_ID', 'That is no id of an item.');
      if (target !== undefined) requireTarget(target);
      await openFolder(authority, parentId);
      const container = { spaceId: authority.spaceId, containerId: driveContainerId, userId: authority.userId };
      const fields = { id, parent: { folderId: parentId }, name, onConflict: 'error', linkTarget: target } as const;
      return changed(makeFolder(database, { ...container, ...fields }));
    },

    async move(computerId, { itemId: id, parentId, name, replace }) {
      const authority = await authorities.toWrite(computerId);
      const { spaceId, userId } = authority;
      await openFolder(authority, parentId);
      const done = replace ? await savedAs(id, { spaceId, parentId, name }) : undefined;
      if (done !== undefined) return { item: await entryOf(done) };
      await open(authority, id);
      const onConflict = replace ? 'replace' : 'error';
      const change = { itemId: id, spaceId, userId, parent: { folderId: parentId }, name, onConflict } as const;
      return changed(moveItem(database, { ...change, replacesFolder: replace, asVersion: config.drive }));
    },

    async trash(computerId, { itemId: id, onlyIfEmpty, removedSinceMs }) {
      const authority = await authorities.toWrite(computerId);
      const { spaceId, userId } = authority;
      const removedSince = removedSinceMs === undefined ? undefined : timeOf(removedSinceMs);
      try {
        await open(authority, id);
        const { item } = await trashItem(database, { itemId: id, spaceId, userId, onlyIfEmpty, removedSince });
        watch.tell();
        return { revision: item.revision };
      } catch (error) {
        // An earlier attempt, or somebody else, has removed it.
        if (!(error instanceof DomainError) || error.kind !== 'notFound') throw error;
        return { revision: 0 };
      }
    },

    async attributes(computerId, { itemId: id, modifiedAtMs, executable }) {
      const authority = await authorities.toWrite(computerId);
      const { spaceId, userId } = authority;
      await open(authority, id);
      const says = {
        ...(modifiedAtMs !== undefined && { modifiedAt: timeOf(modifiedAtMs) }),
        ...(executable !== undefined && { isExecutable: executable }),
      };
      return changed(changeAttributes(database, { itemId: id, spaceId, userId, says }));
    },

    async changes(computerId, { after, epoch: known }, waitMs, signal) {
      const { spaceId, access } = await authorities.now(computerId);
      const epoch = await epochOf();
      const isOther = known !== undefined && known !== epoch;
      let present = access;
      if (waitMs > 0 && !isOther && authorities.isTold(computerId, access)) {
        const revision = (await revisionsOf(database, [spaceId])).get(spaceId) ?? 0;
        if (revision === after) {
          await watch.wait({ computerId, spaceId, after, access }, { waitMs, signal });
          signal.throwIfAborted();
          ({ access: present } = await authorities.now(computerId));
        }
      }
      const { revision, usedBytes, reset, placed } = await changesSince(database, spaceId, isOther ? future : after);
      const own = placed.filter(({ item, place }) => place.containerId === driveContainerId && !item.isRoot);
      const entries = await entriesOf(
        database,
        own.map(({ item }) => item),
      );
      const items = entries.map((entry, n) => ({ ...entry, live: isShown(own[n]) }));
      authorities.told(computerId, present);
      return { epoch, revision, access: present, freeBytes: freeOf(usedBytes), reset, items };
    },
  };
}

const isShown = (placed: Placed | undefined) =>
  placed !== undefined && isInDrive(placed.place) && placed.item.purgingAt === null;

/** Where a list goes on, as text. */
const textOf = ({ isFile, nameKey }: DriveItem) => `${Number(isFile)}${nameKey.toString('hex')}`;

const positionOf = (text: string) => ({ isFile: text.startsWith('1'), nameKey: Buffer.from(text.slice(1), 'hex') });

function requireTarget(target: string): void {
  const isFine = target !== '' && !target.includes('\0') && target.isWellFormed() && !target.includes('\uFFFD');
  if (isFine && Buffer.byteLength(target) <= maxTargetBytes) return;
  throw new DomainError('unprocessable', 'INVALID_TARGET', 'A symlink cannot lead there.');
}
