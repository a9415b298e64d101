import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import type { Database } from '../models/database/database.ts';
import type { Operation } from '../models/operations/operation.ts';
import { type Destruction, findOrder } from '../models/operations/orders.ts';
import { operationOfWorkflow } from '../temporal/workflowIds.ts';

/**
 * The operation that ordered this activity's destruction: the one whose workflow the activity runs for. Every
 * destructive activity checks this first. A workflow that was started by hand has no such operation, so its activity
 * fails without a retry.
 */
export async function requireOrder(database: Database, destruction: Destruction): Promise<Operation> {
  const named = operationOfWorkflow(activityInfo().workflowExecution?.workflowId ?? '');
  const operation = named && (await findOrder(database, named, destruction));
  if (operation === undefined) throw notOrdered();
  return operation;
}

/** Throws unless this activity runs for the workflow of the operation. */
export function requireOwnWorkflow(operationId: string): void {
  const workflowId = activityInfo().workflowExecution?.workflowId ?? '';
  if (operationOfWorkflow(workflowId)?.operationId !== operationId) throw notOrdered();
}

function notOrdered(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'NOT_ORDERED',
    message: 'No running operation has ordered this.',
    nonRetryable: true,
  });
}
