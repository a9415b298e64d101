import { DomainError } from '../../base/errors.ts';
import type { DriveItem } from './driveItem.ts';

/**
 * If-Match (RFC 9110 §13.1.1): throws 412 if the change was made for another content than the current one. `*` matches
 * any item that exists. An item that is not a file has no tag and matches only `*`.
 */
export function requireMatch(item: DriveItem | null, ifMatch: string | undefined): void {
  if (ifMatch === undefined) return;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (item !== null && (tags.includes('*') || (item.etag !== null && tags.includes(item.etag)))) return;
  throw new DomainError(
    'preconditionFailed',
    'ETAG_MISMATCH',
    'The file has changed since you read it. Read it again before you write.',
  );
}
