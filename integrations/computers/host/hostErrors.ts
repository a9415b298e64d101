export type HostErrorCode =
  /** This host does not have the computer. */
  | 'COMPUTER_ABSENT'
  /** The computer does not run. */
  | 'COMPUTER_NOT_RUNNING'
  /** A newer generation was started. */
  | 'GENERATION_OUTDATED'
  /** This generation has run and ended. Another start needs another generation. */
  | 'GENERATION_ENDED'
  | 'START_FAILED'
  | 'DISK_FULL'
  /** The work did not end in time. A repeated call continues it. */
  | 'TIMED_OUT'
  /** Another process runs the computers of this folder. */
  | 'FOLDER_TAKEN'
  /** This machine cannot run computers; the message says what to do. */
  | 'COMPUTERS_OFF';

/** A failure of a host, with a reason for people. Users of a computer get `notRunning`, which reveals nothing of it. */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
