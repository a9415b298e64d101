import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { agentFolder } from '../host/holderSpec.ts';
import { installProgram } from '../host/installProgram.ts';
import { bundle } from './bundle.ts';
import { makeFirstPipes } from './pipes.ts';

const main = fileURLToPath(new URL('./main.ts', import.meta.url));

/** What a short start needs: little of it is compiled, and none of it twice. */
const nodeOptions = ['--no-warnings', '--v8-pool-size=0', '--max-old-space-size=256', '--max-semi-space-size=8'];

/**
 * Writes what the agent needs into a folder that sandboxes see at `agentFolder`, complete when it returns. The answer is
 * the agent’s command line there.
 */
export async function prepareAgent(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const pty = createRequire(import.meta.url).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
  const program = Buffer.from(bundle(main));
  await install(`${folder}/agent.cjs`, 0o644, (path) => writeFile(path, program));
  await install(`${folder}/pty.node`, 0o644, (path) => copyFile(pty, path));
  await installProgram(process.execPath, `${folder}/node`);
  return ['/usr/bin/sh', '-c', makeFirstPipes, `${agentFolder}/node`, ...nodeOptions, `${agentFolder}/agent.cjs`];
}

/** Computers that run have the old file open, and keep it. */
async function install(path: string, mode: number, make: (path: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  await make(temporary);
  if ((await hashOf(path)) === (await hashOf(temporary))) {
    await rm(temporary);
    return;
  }
  await chmod(temporary, mode);
  await rename(temporary, path);
}

async function hashOf(path: string): Promise<string | undefined> {
  return readFile(path).then(
    (bytes) => createHash('sha256').update(bytes).digest('hex'),
    () => undefined,
  );
}
