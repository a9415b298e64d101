import type { Operation } from '../../models/operations/operation.ts';

export function presentOperation(operation: Operation) {
  return {
    id: operation.id,
    kind: operation.kind,
    status: operation.status,
    ...(operation.status === 'succeeded' && { result: operation.result ?? {} }),
    ...(operation.status === 'failed' && {
      error: { code: operation.errorCode ?? 'INTERNAL', detail: operation.errorDetail ?? '' },
    }),
    createdAt: operation.createdAt.toISOString(),
    endedAt: operation.endedAt?.toISOString() ?? null,
  };
}
