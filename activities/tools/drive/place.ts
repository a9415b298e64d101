import type { Transaction } from 'sequelize';
import { DomainError } from '../../../base/errors.ts';
import { type Changer, isAnyApp } from '../../../models/apps/changes.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import type { Database } from '../../../models/database/database.ts';
import type { Placed } from '../../../models/drive/changes.ts';
import { driveContainerId, threadContainerId } from '../../../models/drive/containers.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { findByPath, type Place } from '../../../models/drive/place.ts';

/**
 * The container of a tool's path: the space's drive, or the files of the turn's own thread. A tool cannot name any
 * other.
 */
export interface PathInput {
  path: string;
  container?: 'drive' | 'thread';
}

export const pathProperty = { type: 'string', minLength: 1, maxLength: 4_096, description: 'Such as /reports/2026.md' };
export const containerProperty = {
  enum: ['drive', 'thread'],
  default: 'drive',
  description:
    'The drive of the space, which its computers have at ~/drive; or the files of this conversation (attachments, large tool results).',
};

export function containerOf(turn: Turn, container: PathInput['container']): string {
  return container === 'thread' ? threadContainerId(turn.threadId) : driveContainerId;
}

/** The authority with which a turn changes the drive. */
export function changerOf({ scopes, apiKeyId, id }: Turn): Changer {
  return { scopes, apiKeyId, turnId: id };
}

/** A note for the model if a change at these places changed an app. */
export async function noteOfApp(tx: Transaction, places: readonly Place[]): Promise<{ note?: string }> {
  const above = places.flatMap(({ chain }) => chain.slice(0, -1).map(({ id }) => id));
  if (!(await isAnyApp(tx, above))) return {};
  const note =
    'This file belongs to an app. If the app runs by itself, or is given secrets or a database, the change takes effect only after the user approves the new version of the app.';
  return { note };
}

export async function findPath(
  database: Database,
  turn: Turn,
  { path, container }: PathInput,
): Promise<Placed | undefined> {
  const containerId = containerOf(turn, container);
  return findByPath(database, { spaceId: turn.spaceId, containerId, names: parsePath(path) });
}

/** The item at a path. Throws a DomainError that the model understands if there is none. */
export async function openPath(database: Database, turn: Turn, input: PathInput): Promise<Placed> {
  const found = await findPath(database, turn, input);
  if (found === undefined) throw new DomainError('notFound', 'NOT_FOUND', `There is nothing at ${input.path}.`);
  return found;
}

export async function openFile(database: Database, turn: Turn, input: PathInput): Promise<Placed> {
  const found = await openPath(database, turn, input);
  if (!found.item.isFile) {
    throw new DomainError('conflict', 'NOT_A_FILE', `${input.path} is a ${found.item.kind}, not a file.`);
  }
  return found;
}

/** An item as models see it. */
export function describeItem(item: DriveItem, path?: string) {
  return {
    ...(path === undefined ? { name: item.name } : { path }),
    kind: item.kind,
    ...(item.isFile && { sizeBytes: item.size, contentType: item.contentType }),
    ...(item.kind === 'folder' && { children: item.childCount }),
    updatedAt: item.updatedAt.toISOString(),
  };
}
