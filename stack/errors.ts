/** A start that cannot go on for a reason a person can mend. The message is one line that says what to do. */
export class StackError extends Error {
  override readonly name = 'StackError';
}
