import type { Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import type { Contract, Operation } from '../contract.ts';
import { createRouteTable, type RouteMatch } from '../routeTable.ts';
import type { Validator } from './validator.ts';

/** Finds the contract's operation for a request: 404 for an unknown path, 405 with `Allow` for another method. */
export function findOperation(contract: Contract, validator: Validator): RequestHandler {
  const match = createRouteTable(contract.operations);
  return async (req, res, next) => {
    const found = match(req.path);
    if (found === undefined)
      throw new DomainError('notFound', 'NOT_FOUND', 'There is nothing at this path. /docs lists all paths.');
    const { operations, params } = found;
    const operation = operations.get(req.method) ?? (req.method === 'HEAD' ? headOf(operations) : undefined);
    if (operation === undefined) return refuseMethod(req, res, operations);
    req.operation = operation;
    req.pathParams = params;
    await validator.prepare(req, operation, params);
    next();
  };
}

/** HEAD is GET without its body, which Express leaves out. A webhook delivery has effects, so HEAD must not run it. */
function headOf(operations: RouteMatch['operations']): Operation | undefined {
  const get = operations.get('GET');
  return get?.area === 'Webhooks' ? undefined : get;
}

function refuseMethod(req: Request, res: Response, operations: RouteMatch['operations']): void {
  const head = headOf(operations) === undefined ? [] : ['HEAD'];
  const allowed = [...new Set([...head, ...operations.keys(), 'OPTIONS'])].join(', ');
  if (req.method === 'OPTIONS') {
    res.setHeader('allow', allowed);
    res.status(204).end();
    return;
  }
  throw Object.assign(new Error('Method not allowed'), { status: 405, headers: { allow: allowed } });
}
