import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import { type Operation, operationModels } from '../../models/operations/operation.ts';
import type { CommonDeps } from '../deps.ts';

/** Starts an operation if it has not ended, and waits for its end. Returns its result. Throws why it has failed. */
export async function resultOf(
  { database, workflows }: Pick<CommonDeps, 'database' | 'workflows'>,
  operation: Operation,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  if (operation.status === 'running') void workflows.startOperation(operation);
  const ended = await lookUntil(
    () => operationModels(database).Operation.findByPk(operation.id),
    (now) => now?.status !== 'running',
    { signal, firstMs: 20, mostMs: 500 },
  );
  if (ended?.status === 'succeeded') return ended.result ?? {};
  const { errorCode, errorDetail } = ended ?? {};
  throw new DomainError('conflict', errorCode ?? 'OPERATION_CANCELLED', errorDetail ?? 'The operation was cancelled.');
}
