import { DomainError, notFound } from '../../base/errors.ts';
import { isScope, type Scope } from '../../models/identity/scopes.ts';
import { type Operation, operationModels } from '../../models/operations/operation.ts';
import { findDefinition } from '../../temporal/operations/index.ts';
import { answer } from '../frame/answer.ts';
import { type Caller, callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { presentOperation } from '../frame/presentOperation.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

/** Operations, which take more than one step, for the user who began them. */
export function operationRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/operations/:operationId', async (req, res) => {
    answer<'getOperation'>(
      res,
      200,
      presentOperation(await find(callerOf(req), pathOf<'getOperation'>(req).operationId, readingScope)),
    );
  });

  router.post('/api/operations/:operationId/cancel', async (req, res) => {
    const operation = await find(callerOf(req), pathOf<'cancelOperation'>(req).operationId, beginningScope);
    if (operation.status !== 'running') {
      throw new DomainError(
        'conflict',
        'OPERATION_ENDED',
        `The operation has already ended with the status ${operation.status}.`,
      );
    }
    const reason = findDefinition(operation.kind)?.notCancellable;
    if (reason !== undefined) throw new DomainError('conflict', 'NOT_CANCELLABLE', reason);
    await operation.update({ cancelRequestedAt: operation.cancelRequestedAt ?? new Date() });
    void deps.launcher.cancelOperation(operation);
    answer<'cancelOperation'>(res, 200, presentOperation(await operation.reload()));
  });

  /** Throws 404, 403 `INSUFFICIENT_SCOPE` for an API key whose scopes do not cover the kind of operation. */
  async function find(caller: Caller, operationId: string, neededFor: (kind: string) => Scope): Promise<Operation> {
    const operation = await operationModels(deps.database).Operation.findByPk(operationId);
    if (operation === null || operation.userId !== caller.userId) throw notFound('operation');
    requireScope(caller, neededFor(operation.kind));
    return operation;
  }

  return router;
}

/** What a key needs to begin or cancel such an operation. A kind that only a newer version knows needs everything. */
function beginningScope(kind: string): Scope {
  return findDefinition(kind)?.scope ?? '*';
}

/** What a key needs to see one: the `:read` scope of the same area, where there is one. */
function readingScope(kind: string): Scope {
  const scope = beginningScope(kind);
  const reading = scope.replace(/:write$/, ':read');
  return isScope(reading) ? reading : scope;
}
