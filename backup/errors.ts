/** What keeps a backup from being made, read or restored, in words for the operator. */
export class BackupError extends Error {
  override readonly name: string = 'BackupError';
}

/** Something of a backup is missing or changed. */
export class DamageError extends BackupError {
  override readonly name = 'DamageError';
}

/** A restore was told to write where there is something already, and has not. */
export class NotEmptyError extends BackupError {
  override readonly name = 'NotEmptyError';
}
