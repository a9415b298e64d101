/**
 * Something sealed did not open: it was moved to another row, changed, or sealed under a key that is not here.
 * The message never holds anything that was inside.
 */
export class DecryptionError extends Error {
  override readonly name = 'DecryptionError';
}
