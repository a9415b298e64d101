import type { RequestHandler } from 'express';
import type { Identity } from '../../../models/identity/index.ts';
import { type AccessTable, accessOf, roleOf } from '../auth/access.ts';
import { authorizeOperation } from '../auth/authorizeSpace.ts';
import type { Contract } from '../contract.ts';
import { requireStillAllowed } from '../stillAllowed.ts';

/**
 * Checks the role that the access table requires whenever the path names the space: before the body is read, and
 * independently of the route. Throws at the start when an operation has no row.
 */
export function authorization(
  contract: Contract,
  table: AccessTable,
  deps: { identity: Pick<Identity, 'members'> },
): RequestHandler {
  for (const { id } of contract.operations) accessOf(table, id);
  return async (req, _res, next) => {
    const { operation, pathParams } = req;
    const spaceId = pathParams?.spaceId;
    if (operation !== undefined) req.access = accessOf(table, operation.id);
    if (spaceId !== undefined && req.access !== undefined && roleOf(req.access) !== undefined) {
      req.spaceAccess = await authorizeOperation(deps, req, spaceId);
    }
    next();
  };
}

/** Repeats the checks once the body has been read, since a body may arrive slowly. */
export function authorizationAfterBody(deps: { identity: Identity }): RequestHandler {
  return async (req, _res, next) => {
    if (req.body !== undefined) await requireStillAllowed(deps, req);
    next();
  };
}
