import { DomainError } from '../../base/errors.ts';
import type { DriveItem } from './driveItem.ts';

/**
 * If-Match (RFC 9110 §13.1.1): the change was made for another content than the present one. `*` matches anything that
 * exists; an item that is not a file has no tag, and matches nothing else.
 */
export function requireMatch(item: DriveItem | null, ifMatch: string | undefined): void {
  if (ifMatch === undefined) return;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (item !== null && (tags.includes('*') || (item.etag !== null && tags.includes(item.etag)))) return;
  throw new DomainError(
    'preconditionFailed',
    'ETAG_MISMATCH',
    'The file has changed since you read it. Read it again, and then decide.',
  );
}
