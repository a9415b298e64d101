import type { DomainErrorKind } from '../../base/errors.ts';
import type { ObjectOperation, OperationDefinition } from './operation.ts';

export const computerFailures: Readonly<Record<string, DomainErrorKind>> = {
  HOST_LOST: 'unavailable',
  NO_HOST: 'unavailable',
  COMPUTERS_OFF: 'unavailable',
  TIMED_OUT: 'unavailable',
  START_FAILED: 'upstream',
  DISK_FULL: 'unavailable',
  COMPUTER_ENDED: 'conflict',
  COMPUTER_NOT_RUNNING: 'conflict',
  COMPUTER_STOPPED: 'conflict',
  COMPUTER_WOKEN: 'conflict',
  COMPUTER_DELETED: 'conflict',
  HOST_FAILED: 'upstream',
  TOO_MANY_RUNNING: 'conflict',
  CREDITS_EXHAUSTED: 'paymentRequired',
};
const notCancellable = 'This operation cannot be cancelled. Stop or wake the computer instead.';

const gentle: ObjectOperation = {
  object: 'computer',
  isUrgent: false,
  scope: 'computers:write',
  failures: computerFailures,
  notCancellable,
};
/** Does not wait for a start that is in progress. */
const urgent: ObjectOperation = { ...gentle, isUrgent: true };

/** Done by the workflow of the computer. */
export const computerOperations = {
  wakeComputer: gentle,
  pauseComputer: gentle,
  forkComputer: gentle,
  stopComputer: urgent,
  recoverComputer: urgent,
  deleteComputer: urgent,
} satisfies Record<string, OperationDefinition>;
