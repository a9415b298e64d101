/** A backup cannot be made, read or restored. The message tells the operator why. */
export class BackupError extends Error {
  override readonly name: string = 'BackupError';
}

/** A part of a backup is missing or changed. */
export class DamageError extends BackupError {
  override readonly name = 'DamageError';
}

/** A restore found data where it should write, and changed nothing. */
export class NotEmptyError extends BackupError {
  override readonly name = 'NotEmptyError';
}
