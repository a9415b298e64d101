import type { Workflow } from '@temporalio/common';
import type { DomainErrorKind } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import type { Scope } from '../../models/identity/scopes.ts';
import type { Operation } from '../../models/operations/operation.ts';

/** The part of an operation's row that its workflow is started with. */
export type OperationReference = Pick<Operation, 'id' | 'kind' | 'spaceId' | 'userId' | 'subjectId'>;

interface OperationStart {
  workflow: Workflow;
  args: unknown[];
  /** The host's queue, if only that host can do the work. */
  taskQueue?: string;
}

interface Definition {
  /** The scope that an API key needs to begin or cancel the operation. */
  scope: Scope;
  /** Why it cannot be cancelled, for the caller who tries. Undefined if it can. */
  notCancellable?: string;
  /** The error kinds of its failure codes, for the request that began it. Codes not listed are upstream failures. */
  failures: Readonly<Record<string, DomainErrorKind>>;
}

/** An operation with a workflow of its own. */
export interface OwnOperation extends Definition {
  /** Its workflow and the workflow's arguments: ids and limits, from the row and the configuration. */
  start(operation: OperationReference, config: Config): OperationStart;
}

/** An operation that the workflow of its subject does and ends. */
export interface ObjectOperation extends Definition {
  object: 'computer' | 'repository' | 'database';
  /** Whether it interrupts that workflow's present step instead of waiting for it. */
  isUrgent: boolean;
}

/** Everything about one kind of operation. */
export type OperationDefinition = OwnOperation | ObjectOperation;

export const start = <W extends Workflow>(workflow: W, ...args: Parameters<W>): OperationStart => ({ workflow, args });
