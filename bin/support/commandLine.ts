/** How the operator calls it: nothing puts a program of that name on the PATH. */
export const commandLine = 'npm run -s atrium --';
