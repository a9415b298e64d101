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
