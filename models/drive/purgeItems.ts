import { Op } from 'sequelize';
import { removeAppsOf } from '../apps/removal.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { removeRepositories } from '../git/purge.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { intoTrash, openAny, type Who } from './changes.ts';
import { appContainerId } from './containers.ts';
import type { DriveItem } from './driveItem.ts';
import { requireMatch } from './match.ts';
import { driveModels } from './models.ts';
import { abortUploadsInto } from './uploads.ts';

const itemsPerBatch = 500;
/** Items marked at once when a trash is emptied. */
const marksPerBatch = 1_000;

/**
 * Hides an item permanently, from the trash or straight from its folder, and records the operation that purges it. From
 * here on nothing can be added below it.
 */
export async function beginPurge(
  database: Database,
  change: { itemId: string; spaceId: string; ifMatch?: string | undefined } & Who,
): Promise<Operation> {
  const { itemId, spaceId, userId } = change;
  return transaction(database, async (tx) => {
    await driveModels(tx).Drive.lock(spaceId, tx);
    const found = await openAny(tx, spaceId, itemId);
    requireMatch(found.item, change.ifMatch);
    if (found.item.trashedAt === null) await intoTrash(found, change, tx);
    await found.item.update({ purgingAt: new Date() }, { transaction: tx });
    return operationModels(tx).Operation.begin({ kind: 'purgeItem', spaceId, userId, subjectId: itemId }, tx);
  });
}

/** Hides the items that were put into a container's trash at or before `before`. */
export async function markTrash(
  database: Database,
  where: { spaceId: string; containerId: string },
  before: Date,
): Promise<void> {
  const { Drive, DriveItem } = driveModels(database);
  const { spaceId, containerId } = where;
  for (let marked = marksPerBatch; marked === marksPerBatch; ) {
    marked = await transaction(database, async (tx) => {
      await Drive.lock(spaceId, tx);
      const [count] = await DriveItem.update(
        { purgingAt: new Date() },
        {
          where: { spaceId, trashedFrom: containerId, trashedAt: { [Op.lte]: before }, purgingAt: null },
          limit: marksPerBatch,
          transaction: tx,
        },
      );
      return count;
    });
  }
}

/** Hides the items that were put into any trash before `before`. */
export async function markOldTrash(database: Database, before: Date, onBatch: () => void): Promise<void> {
  const { DriveItem } = driveModels(database);
  for (let isMore = true; isMore; ) {
    const old = await DriveItem.findAll({
      where: { trashedAt: { [Op.lt]: before }, purgingAt: null },
      limit: marksPerBatch,
    });
    const trashes = Map.groupBy(old, ({ spaceId, trashedFrom }) => `${spaceId} ${trashedFrom}`);
    for (const [first] of trashes.values()) {
      const { spaceId, trashedFrom: containerId } = first ?? {};
      if (spaceId !== undefined && containerId) await markTrash(database, { spaceId, containerId }, before);
    }
    onBatch();
    isMore = old.length === marksPerBatch;
  }
}

/** Removes marked items: one item, those of a space, or all. */
export async function purgeMarked(
  database: Database,
  { itemId, spaceId }: { itemId?: string; spaceId?: string },
  onBatch: () => void,
): Promise<void> {
  const where = {
    purgingAt: { [Op.ne]: null },
    ...(itemId !== undefined && { id: itemId }),
    ...(spaceId !== undefined && { spaceId }),
  };
  const { DriveItem } = driveModels(database);
  for (;;) {
    const marked = await DriveItem.findAll({ where, limit: itemsPerBatch });
    if (marked.length === 0) return;
    for (const item of marked) await purgeSubtree(database, item, onBatch);
  }
}

/**
 * Removes an item and everything below it, deepest first and batch by batch, so that a crash leaves a smaller tree
 * without orphans. Objects are only doomed here. The next step removes them from the store.
 */
export async function purgeSubtree(database: Database, top: DriveItem, onBatch: () => void): Promise<void> {
  const { DriveItem } = driveModels(database);
  const open = [top];
  for (let item = open.at(-1); item !== undefined; item = open.at(-1)) {
    // Includes children that are in the trash themselves, because their parent goes now.
    const children = await DriveItem.findAll({ where: { parentId: item.id }, limit: itemsPerBatch });
    const files = children.filter(({ isFile }) => isFile);
    const others = children.filter(({ isFile }) => !isFile);
    if (files.length > 0) await removeItems(database, files);
    open.push(...others);
    // The contents of an app are not below it in the tree. They are in a container of their own.
    const app = item.kind === 'app' ? { spaceId: item.spaceId, containerId: appContainerId(item.id) } : undefined;
    if (app !== undefined) await abortUploadsInto(database, app);
    const root = app === undefined ? null : await DriveItem.rootOf(app.spaceId, app.containerId);
    if (root !== null) open.push(root);
    if (children.length === 0 && root === null) {
      await removeItems(database, [item]);
      open.pop();
    }
    onBatch();
  }
}

async function removeItems(database: Database, items: DriveItem[]): Promise<void> {
  const { Drive, DriveItem, DriveObject, DriveVersion } = driveModels(database);
  const ids = items.map(({ id }) => id);
  const numbers = items.map(({ number }) => number);
  const latest = Math.max(...items.map(({ revision }) => revision));
  await transaction(database, async (tx) => {
    for (const spaceId of new Set(items.map((item) => item.spaceId))) await Drive.forgetUpTo(tx, spaceId, latest);
    const versions = await DriveVersion.findAll({ where: { itemId: ids }, transaction: tx });
    const keys = [...items, ...versions].flatMap(({ objectKey }) => (objectKey === null ? [] : [objectKey]));
    await DriveObject.doom(keys, tx);
    await DriveVersion.destroy({ where: { itemId: ids }, transaction: tx });
    await execute(tx, 'DELETE FROM drive_words WHERE item_number IN (?)', [numbers]);
    const repositories = items.filter(({ kind }) => kind === 'repository');
    await removeRepositories(
      tx,
      repositories.map(({ id }) => id),
    );
    const mayBeApps = items.filter(({ isFile }) => !isFile);
    await removeAppsOf(
      tx,
      mayBeApps.map(({ id }) => id),
    );
    await DriveItem.destroy({ where: { number: numbers }, transaction: tx });
  });
}
