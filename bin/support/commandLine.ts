/** The operator's command. Nothing puts a program named `atrium` on the PATH. */
export const commandLine = 'npm run -s atrium --';
