/** What a model is told of a call that has no result. */
export const interrupted =
  'The tool was interrupted while it ran. Whether it had its effect is not known: look before you try again.';
export const notRun = 'The tool could not be run, and nothing was done. Try again later.';
export const resultLost = 'The tool was run, and its result could not be kept.';
export const notAllowed = 'The user has to allow this first. Call the tool again.';
