import type { DomainErrorKind } from '../../base/errors.ts';
import { gitFailures } from '../../integrations/git/rules/failures.ts';
import { computerFailures } from './computers.ts';
import type { ObjectOperation, OperationDefinition } from './operation.ts';

/** Failures of git, of the computers that are woken for it, and of work on these computers. */
const failures: Readonly<Record<string, DomainErrorKind>> = {
  ...computerFailures,
  ...gitFailures,
  GIT_REPOSITORY_REMOVED: 'conflict',
  NOT_FOUND: 'notFound',
  QUOTA_EXCEEDED: 'tooLarge',
  COMPUTER_PAUSED: 'conflict',
  COMPUTER_WAKES: 'unavailable',
  COMPUTER_CONNECTION_LOST: 'unavailable',
  COMPUTER_NOT_ANSWERING: 'upstreamTimeout',
  COMMAND_TOO_LONG: 'unprocessable',
  FILES_BUSY: 'unavailable',
  TOO_MANY_PROCESSES: 'rateLimited',
  TOO_MANY_TASKS: 'rateLimited',
};

const definition: ObjectOperation = { object: 'repository', isUrgent: false, scope: 'git:write', failures };

/** Done by the workflow of the repository, one after the other. */
export const gitOperations = {
  cloneRepository: definition,
  retryClone: definition,
  fillRepository: definition,
  createBranch: definition,
  commitChanges: definition,
  checkoutBranch: definition,
  pushRepository: definition,
  pullRepository: definition,
  createDraft: definition,
  saveDraft: definition,
  commitDraft: definition,
  mergeDraft: definition,
  discardDraft: definition,
} satisfies Record<string, OperationDefinition>;
