import type { Request } from 'express';
import { DomainError, notFound } from '../../../base/errors.ts';
import type { Identity } from '../../../models/identity/index.ts';
import type { SpaceAccess } from '../../../models/identity/members.ts';
import { isAtLeast } from '../../../models/identity/roles.ts';
import type { Role } from '../../../models/identity/tables.ts';
import { roleOf } from './access.ts';
import { type Caller, callerOf } from './caller.ts';

/**
 * The only way to reach a space: every object is looked up through it. Throws 404 when the space is absent or belongs
 * to another tenant (the two look the same), and 403 when the caller's role is too low. Makes at most one query. The
 * result is at most a second old.
 */
export async function authorizeSpace(
  deps: { identity: Pick<Identity, 'members'> },
  caller: Pick<Caller, 'userId'>,
  spaceId: string,
  minimumRole: Role,
): Promise<SpaceAccess> {
  const access = await deps.identity.members.access(spaceId, caller.userId);
  if (access === undefined) throw notFound('space');
  if (!isAtLeast(access.role, minimumRole)) {
    throw new DomainError(
      'forbidden',
      'ROLE_TOO_LOW',
      `Your role in this space is too low. This needs the role ${minimumRole}.`,
    );
  }
  return access;
}

/**
 * Checks the role that the access table names for the request's operation. For routes whose path does not name the
 * space.
 */
export async function authorizeOperation(
  deps: { identity: Pick<Identity, 'members'> },
  req: Request,
  spaceId: string,
): Promise<SpaceAccess> {
  const caller = callerOf(req);
  const role = req.access === undefined ? undefined : roleOf(req.access, req.pathParams?.userId === caller.userId);
  if (role === undefined) throw new Error(`The table of access names no role for ${req.operation?.id}.`);
  return authorizeSpace(deps, caller, spaceId, role);
}

/** The path's space as the caller sees it. The role was checked before the route. */
export function spaceOf(req: Request): SpaceAccess {
  if (req.spaceAccess === undefined) throw new Error('The path has no {spaceId}, or the table no role.');
  return req.spaceAccess;
}

/** Whether the caller's credential is still valid. Open streams ask every few seconds, so revoking it closes them. */
export async function isStillSignedIn(
  deps: { identity: Pick<Identity, 'sessions' | 'keys'> },
  caller: Caller,
): Promise<boolean> {
  return caller.via === 'session'
    ? deps.identity.sessions.isValid(caller.sessionId)
    : deps.identity.keys.isValid(caller.keyId);
}
