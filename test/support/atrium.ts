import { join } from 'node:path';
import { nodeFlags } from '../../bin/nodeFlags.mjs';
import type { Environment } from '../../config/index.ts';
import { start, type TestProcess } from './processes.ts';

export const program = join(import.meta.dirname, '..', '..', 'bin', 'atrium.ts');

/** The environment of the test with Atrium's own variables replaced by those given. */
export function plainEnvironment(variables: Environment): NodeJS.ProcessEnv {
  const rest = Object.entries(process.env).filter(([name]) => !name.startsWith('ATRIUM_') && name !== 'NODE_ENV');
  return { ...Object.fromEntries(rest), ATRIUM_COMPUTERS: 'off', ...variables };
}

/** Starts the command line as an operator does. */
export function startAtrium(args: string[], variables: Environment): TestProcess {
  return start(process.execPath, [...nodeFlags, program, ...args], { env: plainEnvironment(variables) });
}

export async function runAtrium(args: string[], variables: Environment) {
  const process = startAtrium(args, variables);
  const { code } = await process.exited;
  return { code, stdout: process.stdout(), output: process.output() };
}
