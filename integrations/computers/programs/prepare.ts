import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { cachedDataVersionTag } from 'node:v8';
import { makeFirstPipes } from '../agent/processes/pipes.ts';
import { rehearsals } from '../holder/rehearsals.ts';
import { screenProgramName } from '../holder/screens/screenThread.ts';
import { triedBy } from '../protocol/agentRequests.ts';
import { type AgentCommands, agentFolder } from '../protocol/holderSpec.ts';
import { runHere } from '../system/programs.ts';
import { install, installBundle, installProgram } from './installBundle.ts';

const snapshot = 'agent.blob';
const main = fileURLToPath(new URL('../agent/main.ts', import.meta.url));

/** What a short start needs: little of it is compiled, and none of it twice. */
const nodeOptions = ['--no-warnings', '--v8-pool-size=0', '--max-old-space-size=256', '--max-semi-space-size=8'];
/** Strings are not hashed anew, against others who would know what collides: here are only its tenant’s own. */
const snapshotOptions = ['--no-rehash-snapshot', '--snapshot-blob'];

/**
 * Writes what the agent needs into a folder that sandboxes see at `agentFolder`, complete when it returns. The answer is
 * the agent’s command lines there.
 */
export async function prepareAgent(folder: string): Promise<AgentCommands> {
  await mkdir(folder, { recursive: true });
  const pty = createRequire(import.meta.url).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
  await installBundle(main, folder, 'agent.cjs');
  await install(`${folder}/pty.node`, 0o644, (path) => copyFile(pty, path));
  await installProgram(process.execPath, `${folder}/node`);
  const command = ['/usr/bin/sh', '-c', makeFirstPipes, `${agentFolder}/node`, ...nodeOptions];
  const fromProgram = [...command, `${agentFolder}/agent.cjs`];
  if (!(await makeSnapshot(folder))) return { fromProgram, fromSnapshot: fromProgram };
  return { fromProgram, fromSnapshot: [...command, ...snapshotOptions, `${agentFolder}/${snapshot}`] };
}

/**
 * Makes the startup snapshot from which the agent begins, unless it is there as it was made: of this program, for
 * this Node on this machine. False where none can be made that starts; then its program is loaded each time.
 */
async function makeSnapshot(folder: string): Promise<boolean> {
  // Elsewhere, what runs the agent is another Node, in a container.
  if (process.platform !== 'linux') return false;
  const node = `${folder}/node`;
  const options = [...nodeOptions, ...snapshotOptions];
  const program = sha256(await readFile(`${folder}/agent.cjs`));
  const key = sha256([program, process.version, cachedDataVersionTag(), ...options].join('\n'));
  const keyFile = `${folder}/${snapshot}.key`;
  // A damaged one may well start, and end later.
  const keyWith = async (file: string) => `${key} ${sha256(await readFile(file))}`;
  const known = await readFile(keyFile, 'utf8').catch(() => undefined);
  if (known !== undefined && known === (await keyWith(`${folder}/${snapshot}`).catch(() => undefined))) return true;
  const unfinished = `${folder}/${snapshot}.${process.pid}`;
  try {
    await runHere(node, [...options, unfinished, '--build-snapshot', `${folder}/agent.cjs`]);
    await runHere(node, [...options, unfinished, triedBy]);
    const made = await keyWith(unfinished);
    await rm(keyFile, { force: true }); // a key never stands for another snapshot than its own
    await chmod(unfinished, 0o644);
    await rename(unfinished, `${folder}/${snapshot}`);
    await writeFile(keyFile, made);
    return true;
  } catch {
    await rm(unfinished, { force: true });
    return false;
  }
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');

const holderMain = fileURLToPath(new URL('../holder/main.ts', import.meta.url));
const screens = fileURLToPath(new URL('../holder/screens/screenMain.ts', import.meta.url));

/**
 * Writes the holder’s program into a folder, complete when it returns; the answer is its command line. It is readable
 * for all: what a holder loads later, it loads as its computer’s user.
 */
export async function prepareHolder(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await rm(`${folder}/${rehearsals}`, { recursive: true, force: true }); // of holders that were killed
  await installBundle(holderMain, folder, 'holder.cjs');
  await installBundle(screens, folder, screenProgramName);
  return [process.execPath, `${folder}/holder.cjs`];
}
