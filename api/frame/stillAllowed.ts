import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Role } from '../../models/identity/tables.ts';
import { roleOf } from './auth/access.ts';
import { authorizeOperation, authorizeSpace, isStillSignedIn } from './auth/authorizeSpace.ts';
import { callerOf, notAuthenticated } from './auth/caller.ts';
import type { RouteDeps } from './deps.ts';

export type Allowed = 'yes' | 'signedOut' | 'forbidden';

/**
 * Repeats the checks that admitted a connection: the credential is valid, and the caller has the operation's role in
 * the space, or the `needed` one for this object. Rejects when a check cannot be made.
 */
export function stillAllowed(
  deps: Pick<RouteDeps, 'identity'>,
  req: Request,
  spaceId = req.spaceAccess?.space.id,
  needed?: Role,
): () => Promise<Allowed> {
  const caller = callerOf(req);
  const role = needed ?? (req.access && roleOf(req.access, req.pathParams?.userId === caller.userId)) ?? 'viewer';
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

/**
 * Repeats the checks after a body has been read. The client decides how long that takes, and meanwhile may have been
 * signed out or removed, or the space deleted. Throws the same errors as the first checks. Within a second of those it
 * costs no query.
 */
export async function requireStillAllowed(deps: Pick<RouteDeps, 'identity'>, req: Request): Promise<void> {
  const { caller, spaceAccess } = req;
  if (caller === undefined) return;
  if (!(await isStillSignedIn(deps, caller))) throw notAuthenticated();
  if (spaceAccess !== undefined) req.spaceAccess = await authorizeOperation(deps, req, spaceAccess.space.id);
}
