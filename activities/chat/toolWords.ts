/** What a model is told of a call that has no result. */
export const interrupted =
  'The tool was interrupted while it ran. Whether it had its effect is not known: look before you try again.';
export const notRun = 'The tool could not be run, and nothing was done. Try again later.';
export const resultLost = 'The tool was run, and its result could not be kept.';
export const notAllowed = 'The user has to allow this first. Call the tool again.';

/** What must not run twice may have had its effect, or still have it. */
export function tookTooLong({ timeoutMs, afterCrash }: { timeoutMs: number; afterCrash: 'again' | 'never' }): string {
  const why = `The tool took longer than ${timeoutMs / 1_000} seconds.`;
  return afterCrash === 'again' ? why : `${why} Whether it had its effect is not known: look before you try again.`;
}
