import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { chatModels } from '../chat/models.ts';
import { type Database, transaction } from '../database/database.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';

/** A parsed container id: the space's own drive, the files of a thread, or the files of an app. */
export type ContainerRef = { kind: 'drive' } | { kind: 'thread'; threadId: string } | { kind: 'app'; itemId: string };

export const driveContainerId = 'drive';

export function threadContainerId(threadId: string): string {
  return `thread:${threadId}`;
}

export function appContainerId(itemId: string): string {
  return `app:${itemId}`;
}

/** `drive`, `thread:<threadId>` or `app:<itemId>`; undefined for anything else. */
export function parseContainerId(containerId: string): ContainerRef | undefined {
  if (containerId === driveContainerId) return { kind: 'drive' };
  const [kind, id = ''] = containerId.split(/:(.*)/s);
  if (id === '') return undefined;
  if (kind === 'thread') return { kind, threadId: id };
  if (kind === 'app') return { kind, itemId: id };
  return undefined;
}

/**
 * A container's root. Makes it if needed. This checks again, under the drive's lock, that the container's owner exists.
 * So an upload that ends after its thread was deleted leaves nothing that the purge would miss.
 */
export async function openRoot(
  where: { spaceId: string; containerId: string; userId: string },
  tx: Transaction,
): Promise<DriveItem> {
  const { spaceId, containerId, userId } = where;
  await requireOwner(where, tx);
  const { DriveItem } = driveModels(tx);
  const found = await DriveItem.rootOf(spaceId, containerId, tx);
  return found ?? DriveItem.make({ spaceId, parentId: spaceId, kind: 'folder', name: containerId, userId }, tx);
}

/** The root for a reader, without the lock if it exists. Makes the root of a container that was never written to. */
export async function findRoot(
  database: Database,
  where: { spaceId: string; containerId: string; userId: string },
): Promise<DriveItem> {
  const { Drive, DriveItem } = driveModels(database);
  const found = await DriveItem.rootOf(where.spaceId, where.containerId);
  return (
    found ??
    transaction(database, async (tx) => {
      await Drive.lock(where.spaceId, tx);
      return openRoot(where, tx);
    })
  );
}

/** Throws 404 if the container's owner is gone or belongs to another space. */
export async function requireOwner(
  { spaceId, containerId }: { spaceId: string; containerId: string },
  tx: Transaction,
): Promise<void> {
  const container = parseContainerId(containerId);
  if (container?.kind === 'drive') return;
  const owner =
    container?.kind === 'thread'
      ? await chatModels(tx).Thread.open(container.threadId, tx)
      : container?.kind === 'app'
        ? await driveModels(tx).DriveItem.findOne({
            where: { id: container.itemId, kind: 'app', live: 1 },
            transaction: tx,
          })
        : null;
  if (owner?.spaceId !== spaceId) throw notFound('container');
}
