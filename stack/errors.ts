/** A start failed for a reason that a person can fix. The message is one line that says what to do. */
export class StackError extends Error {
  override readonly name = 'StackError';
}
