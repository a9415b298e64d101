/** What keeps a backup from being made, read or restored, in words for the operator. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
