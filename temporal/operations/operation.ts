import type { Workflow } from '@temporalio/common';
import type { DomainErrorKind } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import type { Scope } from '../../models/identity/scopes.ts';
import type { Operation } from '../../models/operations/operation.ts';

/** What an operation's workflow is started with, taken from its row. */
export type OperationReference = Pick<Operation, 'id' | 'kind' | 'spaceId' | 'userId' | 'subjectId'>;

interface OperationStart {
  workflow: Workflow;
  args: unknown[];
  /** The host's queue, where only that host can do the work. */
  taskQueue?: string;
}

interface Definition {
  /** What an API key needs to begin such an operation, and to cancel it. */
  scope: Scope;
  /** Why it cannot be cancelled, for the caller who tries. Absent where it can. */
  notCancellable?: string;
  /** What its failure codes mean for the request that began it, where the failure is not an upstream one. */
  failures: Readonly<Record<string, DomainErrorKind>>;
}

/** An operation with a workflow of its own. */
export interface OwnOperation extends Definition {
  /** Its workflow and the workflow's arguments: ids and limits, from the row and the configuration. */
  start(operation: OperationReference, config: Config): OperationStart;
}

/** An operation that the workflow of its subject does, and ends. */
export interface ObjectOperation extends Definition {
  object: 'computer' | 'repository' | 'database';
  /** Whether it does not wait for what that workflow is doing. */
  isUrgent: boolean;
}

/** Everything about one kind of operation. */
export type OperationDefinition = OwnOperation | ObjectOperation;

export const start = <W extends Workflow>(workflow: W, ...args: Parameters<W>): OperationStart => ({ workflow, args });
