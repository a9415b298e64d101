import type { DomainErrorKind } from '../../base/errors.ts';
import { snapshotComputer } from '../../workflows/computers/snapshotComputer.ts';
import { hostTaskQueue } from '../taskQueues.ts';
import { type ObjectOperation, type OperationDefinition, start } from './operation.ts';

export const computerFailures: Readonly<Record<string, DomainErrorKind>> = {
  HOST_LOST: 'unavailable',
  NO_HOST: 'unavailable',
  ENVIRONMENTS_UNAVAILABLE: 'unavailable',
  BASES_OFF: 'unavailable',
  BASE_FAILED: 'upstream',
  IMAGES_OFF: 'unavailable',
  IMAGE_NOT_FOUND: 'unprocessable',
  IMAGE_ACCESS_DENIED: 'unprocessable',
  IMAGE_DAMAGED: 'upstream',
  IMAGE_UNSUPPORTED: 'unprocessable',
  IMAGE_TOO_LARGE: 'unprocessable',
  IMAGE_FAILED: 'upstream',
  REGISTRY_UNREACHABLE: 'upstream',
  REGISTRY_TIMED_OUT: 'upstream',
  COMPUTERS_OFF: 'unavailable',
  TIMED_OUT: 'unavailable',
  START_FAILED: 'upstream',
  DISK_FULL: 'unavailable',
  COMPUTER_UNUSED: 'conflict',
  SNAPSHOT_DELETED: 'conflict',
  VERSION_DELETED: 'conflict',
  QUOTA_EXCEEDED: 'tooLarge',
  STORAGE_UNAVAILABLE: 'unavailable',
  SAVE_TOO_LARGE: 'unprocessable',
  PATH_TOO_LONG: 'unprocessable',
  SAVE_UNREADABLE: 'unavailable',
  SAVE_BROKEN: 'unprocessable',
  COMPUTER_ENDED: 'conflict',
  COMPUTER_NOT_RUNNING: 'conflict',
  COMPUTER_STOPPED: 'conflict',
  COMPUTER_WOKEN: 'conflict',
  COMPUTER_RESTORED: 'conflict',
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

/** Done by the workflow of the computer, except for snapshots: these do not wait for its other work. */
export const computerOperations = {
  snapshotComputer: {
    scope: 'computers:write',
    start: ({ subjectId }, { computers, installation, temporal: { heartbeatTimeoutMs } }) =>
      start(snapshotComputer, {
        snapshotId: subjectId,
        queuePrefix: hostTaskQueue(installation, ''),
        hostLostMs: computers.hostLostMs,
        heartbeatTimeoutMs,
      }),
    failures: computerFailures,
    notCancellable: 'This operation cannot be cancelled. Delete the snapshot instead.',
  },
  wakeComputer: gentle,
  pauseComputer: gentle,
  forkComputer: gentle,
  stopComputer: urgent,
  recoverComputer: urgent,
  restoreComputer: urgent,
  deleteComputer: urgent,
} satisfies Record<string, OperationDefinition>;
