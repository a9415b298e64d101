import type { Request } from 'express';
import { DomainError } from '../../models/errors.ts';
import { roleOf } from './auth/access.ts';
import { authorizeSpace, isStillSignedIn } from './auth/authorizeSpace.ts';
import { callerOf } from './auth/caller.ts';
import type { RouteDeps } from './deps.ts';

export type Allowed = 'yes' | 'signedOut' | 'forbidden';

/**
 * Repeats the checks that admitted a connection: that its credential is valid, and that its caller has the operation's
 * role in the space. Rejects when they cannot be made.
 */
export function stillAllowed(
  deps: Pick<RouteDeps, 'identity'>,
  req: Request,
  spaceId = req.spaceAccess?.space.id,
): () => Promise<Allowed> {
  const caller = callerOf(req);
  const role = (req.access && roleOf(req.access, req.pathParams?.userId === caller.userId)) ?? 'viewer';
  return async () => {
    if (!(await isStillSignedIn(deps, caller))) return 'signedOut';
    if (spaceId === undefined) return 'yes';
    try {
      await authorizeSpace(deps, caller, spaceId, role);
      return 'yes';
    } catch (error) {
      if (error instanceof DomainError && (error.kind === 'notFound' || error.kind === 'forbidden')) return 'forbidden';
      throw error;
    }
  };
}
