import { DomainError } from '../../models/errors.ts';
import type { Repository } from '../../models/git/repository.ts';

/** Throws 409 `GIT_REPOSITORY_NOT_READY` for one that has not been cloned. */
export function requireReady({ status }: Pick<Repository, 'status'>): void {
  if (status === 'ready') return;
  const detail = 'The repository has not been cloned yet, or that has failed.';
  throw new DomainError('conflict', 'GIT_REPOSITORY_NOT_READY', detail, { retryAfterSeconds: 5 });
}
