import type { DomainErrorKind } from '../../models/errors.ts';
import type { OperationDefinition } from './operation.ts';

const failures: Readonly<Record<string, DomainErrorKind>> = {
  GIT_URL_REFUSED: 'unprocessable',
  GIT_REF_UNKNOWN: 'unprocessable',
  GIT_REMOTE_NOT_FOUND: 'unprocessable',
  GIT_AUTHENTICATION_FAILED: 'unprocessable',
  GIT_REMOTE_REFUSED: 'unprocessable',
  GIT_REMOTE_FORBIDDEN: 'unprocessable',
  GIT_TOO_LARGE: 'unprocessable',
  GIT_OBJECTS_REFUSED: 'unprocessable',
  GIT_CONFLICT: 'conflict',
  GIT_REPOSITORY_REMOVED: 'conflict',
  GIT_REMOTE_TOO_SLOW: 'upstreamTimeout',
  GIT_FAILED: 'unavailable',
  GIT_NOT_INSTALLED: 'unavailable',
  QUOTA_EXCEEDED: 'tooLarge',
  TIMED_OUT: 'unavailable',
};

/** Done by the workflow of their repository, one after the other. */
export const gitOperations = {
  cloneRepository: { object: 'repository', isUrgent: false, failures },
  retryClone: { object: 'repository', isUrgent: false, failures },
} satisfies Record<string, OperationDefinition>;
