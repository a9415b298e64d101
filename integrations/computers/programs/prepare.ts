import { mkdir, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { screenProgramName } from '../holder/screens/screenThread.ts';
import { agentFolder, rehearsalsFolder } from '../protocol/holderSpec.ts';
import { installBundle, installProgram } from './install.ts';

const sourceOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/**
 * Installs the agent in a folder that sandboxes see at `agentFolder`. Returns its command line as seen inside a sandbox.
 */
export async function prepareAgent(folder: string, program: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await installProgram(program, `${folder}/agent`);
  return [`${agentFolder}/agent`];
}

/**
 * Writes the holder's program into a folder and returns its command line. All files are complete when it returns. Every
 * user may read them: a holder loads parts of its program later, as its computer's user.
 */
export async function prepareHolder(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await rm(`${folder}/${rehearsalsFolder}`, { recursive: true, force: true }); // left by killed holders
  await installBundle(sourceOf('../holder/main.ts'), folder, 'holder.cjs');
  await installBundle(sourceOf('../holder/screens/screenMain.ts'), folder, screenProgramName);
  return [process.execPath, `${folder}/holder.cjs`];
}
