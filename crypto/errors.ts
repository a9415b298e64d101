/**
 * A sealed value did not open: it was moved to another row, changed, or sealed under a missing key. The message never
 * contains any of the plaintext.
 */
export class DecryptionError extends Error {
  override readonly name = 'DecryptionError';
}
