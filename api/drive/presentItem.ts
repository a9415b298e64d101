import type { DriveItem } from '../../models/drive/driveItem.ts';
import type { DriveVersion } from '../../models/drive/driveVersion.ts';
import type { Damage } from '../../models/drive/findings.ts';
import type { Place } from '../../models/drive/place.ts';
import type { Found } from '../../models/drive/search.ts';
import { optionalTime, time } from '../frame/times.ts';

/** `damaged` maps object keys to known damage of their contents. */
export function presentItem({ item, place }: { item: DriveItem; place: Place }, damaged?: ReadonlyMap<string, Damage>) {
  return {
    id: item.id,
    spaceId: item.spaceId,
    containerId: place.containerId,
    parentId: item.isRoot ? null : item.parentId,
    kind: item.kind,
    name: item.isRoot ? '' : item.name,
    path: place.path,
    ...presentContent(item),
    ...presentDamage(item, damaged),
    version: item.version,
    childCount: item.childCount,
    createdBy: item.createdBy,
    createdAt: time(item.createdAt),
    updatedBy: item.updatedBy,
    updatedAt: time(item.updatedAt),
    modifiedAt: time(item.modifiedAt ?? item.updatedAt),
    executable: item.isExecutable,
    ...(item.linkTarget !== null && { target: item.linkTarget }),
    trashedAt: optionalTime(item.trashedAt),
  };
}

/** A file in the answer to an upload. */
export function presentUploaded({ item, place }: { item: DriveItem; place: Place }) {
  const { size, contentType, etag, sha256 } = presentContent(item);
  if (size === null || contentType === null || etag === null || sha256 === null)
    throw new Error('A file has no content.');
  return {
    containerId: place.containerId,
    path: place.path,
    id: item.id,
    name: item.name,
    size,
    contentType,
    etag,
    sha256,
  };
}

export function presentVersion(version: DriveVersion | DriveItem, damaged?: ReadonlyMap<string, Damage>) {
  const isPresent = 'id' in version;
  return {
    version: version.version,
    isCurrent: isPresent,
    ...presentContent(version),
    ...presentDamage(version, damaged),
    createdBy: isPresent ? version.updatedBy : version.createdBy,
    createdAt: time(isPresent ? version.updatedAt : version.createdAt),
  };
}

export function presentFound({ item, place, fields }: Found, damaged?: ReadonlyMap<string, Damage>) {
  return { ...presentItem({ item, place }, damaged), matched: fields };
}

function presentDamage({ objectKey }: Pick<DriveItem, 'objectKey'>, damaged?: ReadonlyMap<string, Damage>) {
  const damage = objectKey === null ? undefined : damaged?.get(objectKey);
  return damage === undefined ? {} : { damage };
}

function presentContent({
  size,
  contentType,
  sha256,
  etag,
}: Pick<DriveItem, 'size' | 'contentType' | 'sha256' | 'etag'>) {
  return { size, contentType, etag, sha256: sha256?.toString('hex') ?? null };
}
