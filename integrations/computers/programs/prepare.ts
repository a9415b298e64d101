import { copyFile, mkdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { screenProgramName } from '../holder/screens/screenThread.ts';
import { agentFolder, rehearsalsFolder } from '../protocol/holderSpec.ts';
import { install, installBundle, installProgram } from './install.ts';

const sourceOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** Node options for a fast start and a small heap. */
const nodeOptions = ['--no-warnings', '--v8-pool-size=0', '--max-old-space-size=256', '--max-semi-space-size=8'];

/**
 * Writes the agent's files into a folder that sandboxes see at `agentFolder`. All files are complete when it returns.
 * Returns the agent's command line as seen inside a sandbox.
 */
export async function prepareAgent(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const pty = createRequire(import.meta.url).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
  await installBundle(sourceOf('../agent/main.ts'), folder, 'agent.cjs');
  await install(`${folder}/pty.node`, 0o644, (path) => copyFile(pty, path));
  await installProgram(process.execPath, `${folder}/node`);
  return [`${agentFolder}/node`, ...nodeOptions, `${agentFolder}/agent.cjs`];
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
