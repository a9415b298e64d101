import { DomainError, notFound } from '../../base/errors.ts';
import { type Operation, operationModels } from '../../models/operations/operation.ts';
import { findDefinition } from '../../temporal/operations/index.ts';
import { answer } from '../frame/answer.ts';
import { type Caller, callerOf } from '../frame/auth/caller.ts';
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
      presentOperation(await find(callerOf(req), pathOf<'getOperation'>(req).operationId)),
    );
  });

  router.post('/api/operations/:operationId/cancel', async (req, res) => {
    const operation = await find(callerOf(req), pathOf<'cancelOperation'>(req).operationId);
    if (operation.status !== 'running') {
      throw new DomainError(
        'conflict',
        'OPERATION_ENDED',
        `The operation has ended already: it is ${operation.status}.`,
      );
    }
    const reason = findDefinition(operation.kind)?.notCancellable;
    if (reason !== undefined) throw new DomainError('conflict', 'NOT_CANCELLABLE', reason);
    await operation.update({ cancelRequestedAt: operation.cancelRequestedAt ?? new Date() });
    void deps.launcher.cancelOperation(operation);
    answer<'cancelOperation'>(res, 200, presentOperation(await operation.reload()));
  });

  async function find(caller: Caller, operationId: string): Promise<Operation> {
    const operation = await operationModels(deps.database).Operation.findByPk(operationId);
    if (operation === null || operation.userId !== caller.userId) throw notFound('operation');
    return operation;
  }

  return router;
}
