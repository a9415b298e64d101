import type { Workflow } from '@temporalio/common';
import type { Config } from '../config/index.ts';
import { autoTopUp } from '../workflows/billing/autoTopUp.ts';
import { setUpBilling } from '../workflows/billing/setUpBilling.ts';
import { topUp } from '../workflows/billing/topUp.ts';
import { completeUpload } from '../workflows/drive/completeUpload.ts';
import { purgeTrash } from '../workflows/drive/purgeTrash.ts';
import { purgeDeleted } from '../workflows/operations/purgeDeleted.ts';
import type { OperationReference } from './client.ts';

interface OperationStart {
  workflow: Workflow;
  args: unknown[];
}

const start = <W extends Workflow>(workflow: W, ...args: Parameters<W>): OperationStart => ({ workflow, args });

/** The workflow of each kind of operation, and what it is given: ids and limits, all from the operation's row and the configuration. */
export const operationStarts: Record<string, (operation: OperationReference, config: Config) => OperationStart> = {
  deleteThread: ({ id, subjectId }, { temporal: { heartbeatTimeoutMs } }) =>
    start(purgeDeleted, { operationId: id, scope: { threadId: subjectId }, heartbeatTimeoutMs }),

  deleteSpace: ({ id, subjectId }, { temporal: { heartbeatTimeoutMs } }) =>
    start(purgeDeleted, { operationId: id, scope: { spaceId: subjectId }, heartbeatTimeoutMs }),

  purgeItem: ({ id, subjectId, spaceId }, { temporal: { heartbeatTimeoutMs } }) =>
    start(purgeTrash, { operationId: id, spaceId: spaceId ?? '', itemId: subjectId, heartbeatTimeoutMs }),

  emptyTrash: ({ id, spaceId }, { temporal: { heartbeatTimeoutMs } }) =>
    start(purgeTrash, { operationId: id, spaceId: spaceId ?? '', itemId: null, heartbeatTimeoutMs }),

  completeUpload: ({ id, subjectId }, { temporal: { heartbeatTimeoutMs } }) =>
    start(completeUpload, { operationId: id, uploadId: subjectId, heartbeatTimeoutMs }),

  setUpBilling: ({ id, subjectId }) => start(setUpBilling, { operationId: id, spaceId: subjectId }),

  topUp: ({ id, subjectId }, { billing }) =>
    start(topUp, { operationId: id, checkoutId: subjectId, firstLookMs: billing.checkoutLookMs }),

  autoTopUp: ({ id, subjectId }) => start(autoTopUp, { operationId: id, checkoutId: subjectId }),
};
