import type { RequestHandler } from 'express';
import type { Identity } from '../../../models/identity/index.ts';
import { accessOf, roleOf } from '../auth/access.ts';
import { authorizeOperation } from '../auth/authorizeSpace.ts';
import type { Contract } from '../contract.ts';

/**
 * Asks for the role that the table names (auth/roles.ts), wherever the path says of which space: before the body is read, and whatever the route
 * does. Throws at the start when an operation has no row.
 */
export function authorization(contract: Contract, deps: { identity: Pick<Identity, 'members'> }): RequestHandler {
  for (const { id } of contract.operations) accessOf(id);
  return async (req, _res, next) => {
    const { operation, pathParams } = req;
    const spaceId = pathParams?.spaceId;
    if (operation !== undefined && spaceId !== undefined && roleOf(accessOf(operation.id)) !== undefined) {
      req.spaceAccess = await authorizeOperation(deps, req, spaceId);
    }
    next();
  };
}
