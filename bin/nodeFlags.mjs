// Plain JavaScript, since the bootstrap runs it before anything is installed.

/**
 * What Node is started with to run Atrium. Most of a start's work is to load its modules, and a fifth of that was to
 * look for links on the way to each, where npm puts none, and to collect garbage in a young generation that is small.
 */
export const nodeFlags = ['--preserve-symlinks', '--min-semi-space-size=16'];
