import type { SearchAttributePair } from '@temporalio/common';
import type { LauncherParts, Reached } from '../launcherKit.ts';
import { findDefinition, isOfObject } from '../operations/index.ts';
import type { ObjectOperation, OperationReference } from '../operations/operation.ts';
import { kindKey, spaceIdKey, userIdKey } from '../searchKeys.ts';
import { operationWorkflowId } from '../workflowIds.ts';
import type { createComputerLauncher } from './computers.ts';
import type { createDatabaseLauncher } from './databases.ts';
import type { createGitLauncher } from './git.ts';

/** The actors that do some of the operations. */
type Subjects = ReturnType<typeof createComputerLauncher> &
  ReturnType<typeof createGitLauncher> &
  ReturnType<typeof createDatabaseLauncher>;

export function createOperationLauncher({ config, kit, logger }: LauncherParts, actors: Subjects) {
  function tellSubject({ object }: ObjectOperation, operation: OperationReference): Promise<Reached> {
    const subject = subjectOf(operation);
    if (object === 'repository') return actors.startRepository(subject);
    return object === 'database' ? actors.startDatabase(subject) : actors.startComputer(subject);
  }

  return {
    /**
     * Starts the workflow of an operation whose row is written. An operation of a kind that only a newer version knows
     * waits for that version.
     */
    async startOperation(operation: OperationReference): Promise<Reached> {
      const definition = findDefinition(operation.kind);
      if (definition === undefined) {
        logger.warn({ operationId: operation.id, kind: operation.kind }, 'This kind of operation is not known here.');
        return 'late';
      }
      if ('object' in definition) {
        return definition.isUrgent
          ? actors.interruptComputer(subjectOf(operation))
          : tellSubject(definition, operation);
      }
      const { workflow, args, taskQueue } = definition.start(operation, config);
      const attributes: SearchAttributePair[] = [
        { key: userIdKey, value: operation.userId },
        { key: kindKey, value: operation.kind },
      ];
      if (operation.spaceId !== null) attributes.push({ key: spaceIdKey, value: operation.spaceId });
      const workflowId = operationWorkflowId(operation.kind, operation.id);
      return kit.start(workflow, { workflowId, args, attributes, taskQueue });
    },

    /** Whether the workflow of its subject does the operation. To resume it, the subject has to be told again. */
    isOfObject,

    /**
     * Tells the workflow of the subject again of an operation that has not ended. The step under way goes on: if each
     * reminder interrupted it, a long one would never end.
     */
    async remindOperation(operation: OperationReference): Promise<Reached> {
      const definition = findDefinition(operation.kind);
      return definition !== undefined && 'object' in definition ? tellSubject(definition, operation) : 'late';
    },

    /** Asks the workflow that does an operation to cancel it. */
    cancelOperation(operation: OperationReference): Promise<Reached> {
      const definition = findDefinition(operation.kind);
      if (definition !== undefined && 'object' in definition && definition.object === 'repository') {
        return actors.interruptRepository(subjectOf(operation));
      }
      return kit.cancel(operationWorkflowId(operation.kind, operation.id));
    },

    describeOperation: (kind: string, id: string) => kit.describe(operationWorkflowId(kind, id)),
    runningOperations: <Reference extends Pick<OperationReference, 'kind' | 'id'>>(operations: readonly Reference[]) =>
      kit.running(operations, ({ kind, id }) => operationWorkflowId(kind, id)),
  };
}

function subjectOf({ subjectId, spaceId }: OperationReference): { id: string; spaceId: string } {
  return { id: subjectId, spaceId: spaceId ?? '' };
}
