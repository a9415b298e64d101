import { DomainError } from '../../../base/errors.ts';

export type HostErrorCode =
  /** Nothing of this computer is here. */
  | 'COMPUTER_ABSENT'
  /** It does not run, and what was asked needs it to. */
  | 'COMPUTER_NOT_RUNNING'
  /** A newer start has been seen. */
  | 'GENERATION_OUTDATED'
  /** This generation has run, and ended: another start needs another one. */
  | 'GENERATION_ENDED'
  | 'START_FAILED'
  | 'DISK_FULL'
  /** It was not done in time. Asking again goes on where it was. */
  | 'TIMED_OUT'
  /** Another process runs the computers of this folder. */
  | 'FOLDER_TAKEN'
  /** This machine cannot run computers; the message says what to do. */
  | 'COMPUTERS_OFF';

/** What a host could not do, with a reason for a person. */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a host’s failure is for whoever wants to use a computer: they are told no more of the host. */
export function notRunning(cause: HostError): DomainError {
  return new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.', { cause });
}
