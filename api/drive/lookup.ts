import { DomainError, notFound } from '../../base/errors.ts';
import type { Placed } from '../../models/drive/changes.ts';
import { findRoot } from '../../models/drive/containers.ts';
import { parsePath } from '../../models/drive/names.ts';
import { findByPath, linkOf, Place } from '../../models/drive/place.ts';
import type { RouteDeps } from '../frame/deps.ts';

/** The item at a path of a container that the caller may read. The root always exists. */
export async function openPath(
  { database }: Pick<RouteDeps, 'database'>,
  where: { spaceId: string; containerId: string; userId: string },
  path: string,
): Promise<Placed> {
  const names = parsePath(path);
  if (names.length === 0) {
    const root = await findRoot(database, where);
    return { item: root, place: new Place([linkOf(root)]) };
  }
  const found = await findByPath(database, { ...where, names });
  if (found === undefined) throw notFound('item');
  return found;
}

/** The last name of a path, and the names before it. */
export function splitPath(path: string): { names: string[]; name: string } {
  const names = parsePath(path);
  const name = names.pop();
  if (name === undefined) throw new DomainError('unprocessable', 'INVALID_NAME', 'The path names no item.');
  return { names, name };
}

/** A request gives a place either by a path or by a folder's id. Together they could contradict each other. */
export function pathOrParent(): DomainError {
  return new DomainError(
    'unprocessable',
    'PATH_OR_PARENT',
    'Give either a path (with its containerId), or a parentId and a name.',
  );
}
