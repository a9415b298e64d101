import type { RequestHandler } from 'express';
import type { Identity } from '../../../models/identity/index.ts';
import { type AccessTable, accessOf, roleOf } from '../auth/access.ts';
import { authorizeOperation } from '../auth/authorizeSpace.ts';
import type { Contract } from '../contract.ts';
import { requireStillAllowed } from '../stillAllowed.ts';

/**
 * Checks the role that the table names (api/<area>/access.ts) wherever the path names the space: before the body is
 * read, and whatever the route does. Throws at the start when an operation has no row.
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

/** Asks again for what was asked before the body: a body may come slowly. */
export function authorizationAfterBody(deps: { identity: Identity }): RequestHandler {
  return async (req, _res, next) => {
    if (req.body !== undefined) await requireStillAllowed(deps, req);
    next();
  };
}
