import type { Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../../models/errors.ts';
import type { Contract } from '../contract.ts';
import { createRouteTable } from '../routeTable.ts';
import type { Validator } from './validator.ts';

/** Finds the contract's operation for a request: 404 for an unknown path, 405 with `Allow` for another method. */
export function findOperation(contract: Contract, validator: Validator): RequestHandler {
  const match = createRouteTable(contract.operations);
  return async (req, res, next) => {
    const found = match(req.path);
    if (found === undefined)
      throw new DomainError('notFound', 'NOT_FOUND', 'There is nothing at this path; /docs shows what there is.');
    // HEAD is GET without its body; Express leaves the body out. A delivery has an effect, by whatever method it comes.
    const get = found.operations.get('GET');
    const methods = new Map(get === undefined || get.area === 'Webhooks' ? [] : [['HEAD', get]]);
    for (const [method, operation] of found.operations) methods.set(method, operation);
    const operation = methods.get(req.method);
    if (operation === undefined) return refuseMethod(req, res, [...methods.keys()]);
    req.operation = operation;
    req.pathParams = found.params;
    await validator.prepare(req, operation, found.params);
    next();
  };
}

function refuseMethod(req: Request, res: Response, methods: readonly string[]): void {
  const allowed = [...methods, 'OPTIONS'].join(', ');
  if (req.method === 'OPTIONS') {
    res.setHeader('allow', allowed);
    res.status(204).end();
    return;
  }
  throw Object.assign(new Error('Method not allowed'), { status: 405, headers: { allow: allowed } });
}
