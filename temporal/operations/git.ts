import type { DomainErrorKind } from '../../base/errors.ts';
import { gitFailures } from '../../integrations/git/rules/failures.ts';
import { computerFailures } from './computers.ts';
import type { OperationDefinition } from './operation.ts';

/** Git's own, those of the computers that are woken for it, and what keeps somebody from working there. */
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

/** Done by the workflow of their repository, one after the other. */
export const gitOperations = {
  cloneRepository: { object: 'repository', isUrgent: false, failures },
  retryClone: { object: 'repository', isUrgent: false, failures },
  fillRepository: { object: 'repository', isUrgent: false, failures },
  createBranch: { object: 'repository', isUrgent: false, failures },
  commitChanges: { object: 'repository', isUrgent: false, failures },
  checkoutBranch: { object: 'repository', isUrgent: false, failures },
  pushRepository: { object: 'repository', isUrgent: false, failures },
  pullRepository: { object: 'repository', isUrgent: false, failures },
  createDraft: { object: 'repository', isUrgent: false, failures },
  saveDraft: { object: 'repository', isUrgent: false, failures },
  commitDraft: { object: 'repository', isUrgent: false, failures },
  mergeDraft: { object: 'repository', isUrgent: false, failures },
  discardDraft: { object: 'repository', isUrgent: false, failures },
} satisfies Record<string, OperationDefinition>;
