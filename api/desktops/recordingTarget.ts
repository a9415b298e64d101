import type { Request } from 'express';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../../models/database/database.ts';
import type { RecordingFolder } from '../../models/desktops/recordings.ts';
import { openLiving } from '../../models/drive/changes.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { checkName, joinPath, parsePath } from '../../models/drive/names.ts';
import { findByPath } from '../../models/drive/place.ts';
import type { Authority } from '../../models/identity/authority.ts';
import { authorityOf, callerOf, requireScope } from '../frame/auth/caller.ts';

/**
 * The authority with which a recording is saved. Throws 403 `INSUFFICIENT_SCOPE` for a key that may not change the
 * drive.
 */
export function driveAuthority(req: Request): Authority {
  const caller = callerOf(req);
  requireScope(caller, 'drive:write', ', which saving a recording to the drive needs');
  return authorityOf(caller);
}

/** The name of a recording's file: by default it has the time in it. Throws 422 `INVALID_NAME`. */
export function fileNameOf(name: string | undefined, now: Date): string {
  const stamp = now.toISOString().replace('T', ' ').replaceAll(':', '.').slice(0, 19);
  const wanted = name ?? `Desktop ${stamp}.mp4`;
  const fileName = /\.mp4$/i.test(wanted) ? wanted : `${wanted}.mp4`;
  checkName(fileName);
  return fileName;
}

/**
 * The folder of the space's drive that a request names; undefined when it names none. Throws 404, 409 `NOT_A_FOLDER`,
 * 422 `PATH_OR_PARENT`.
 */
export async function recordingFolder(
  database: Database,
  spaceId: string,
  { parentId, path }: { parentId?: string | undefined; path?: string | undefined },
): Promise<RecordingFolder | undefined> {
  if (parentId !== undefined && path !== undefined) {
    throw new DomainError(
      'unprocessable',
      'PATH_OR_PARENT',
      'Give either `path` or `parentId` for the folder, not both.',
    );
  }
  if (parentId !== undefined) {
    const { item, place } = await openLiving(database, spaceId, parentId);
    // A folder of a thread belongs to the thread's owner.
    if (place.containerId !== driveContainerId) throw notFound('folder');
    requireFolder(item.kind);
    return { id: parentId };
  }
  if (path === undefined) return undefined;
  const names = parsePath(path);
  const found = await findByPath(database, { spaceId, containerId: driveContainerId, names });
  if (found !== undefined) requireFolder(found.item.kind);
  return { path: joinPath(names) };
}

function requireFolder(kind: string): void {
  if (kind !== 'folder') {
    throw new DomainError('conflict', 'NOT_A_FOLDER', 'The target is not a folder. Name a folder.');
  }
}
