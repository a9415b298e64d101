// Plain JavaScript, since the bootstrap runs it before anything is installed.

/**
 * Node's flags for Atrium. Loading modules is most of a start's work. A fifth of that was resolving links on the way to
 * each module, where npm makes none, and collecting garbage in a small young generation.
 */
export const nodeFlags = ['--preserve-symlinks', '--min-semi-space-size=16'];
