import type { Workflow } from '@temporalio/common';
import type { Config } from '../../config/index.ts';
import type { DomainErrorKind } from '../../models/errors.ts';
import type { Operation } from '../../models/operation.ts';

/** What an operation's workflow is started with, read off its row. */
export type OperationReference = Pick<Operation, 'id' | 'kind' | 'spaceId' | 'userId' | 'subjectId'>;

interface OperationStart {
  workflow: Workflow;
  args: unknown[];
  /** The queue of a host, where only that can do it. */
  taskQueue?: string;
}

/** All that is known of a kind of operation. */
export interface OperationDefinition {
  /** Its workflow and what that is given: ids and limits, from the row and the configuration. */
  start(operation: OperationReference, config: Config): OperationStart;
  /** Why it cannot be called off: said to whoever tries. Absent where it can. */
  notCancellable?: string;
  /** What the codes with which it fails mean for the request that began it, where nothing behind us has failed. */
  failures: Readonly<Record<string, DomainErrorKind>>;
}

export const start = <W extends Workflow>(workflow: W, ...args: Parameters<W>): OperationStart => ({ workflow, args });
