import { purgeDeleted } from '../../workflows/operations/purgeDeleted.ts';
import { type OperationDefinition, start } from './operation.ts';
import { staysDeleted } from './reasons.ts';

export const chatOperations = {
  deleteThread: {
    scope: 'chat',
    start: ({ id, subjectId }, { temporal: { heartbeatTimeoutMs } }) =>
      start(purgeDeleted, { operationId: id, scope: { threadId: subjectId }, heartbeatTimeoutMs }),
    notCancellable: staysDeleted,
    failures: {},
  },
} satisfies Record<string, OperationDefinition>;
