import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { canInstall, installPackages } from '../../stack/install.ts';
import { temporaryFolder } from './folders.ts';
import { createStackContext } from './stackContext.ts';

const run = promisify(execFile);
const installMs = 300_000;

/** Whether this machine has Python with `venv`, or can install them. Otherwise prints that the tests are left out. */
export function canHavePython(): boolean {
  if (hasVenv() || canInstall({ environment: process.env })) return true;
  process.stderr.write(
    'LEFT OUT: tests with Python. This machine has no python3 with venv (Debian: apt-get install python3-venv).\n',
  );
  return false;
}

function hasVenv(): boolean {
  try {
    execFileSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Runs programs in a test's own Python environment with these packages, each with an exact version. */
export async function startPython(...packages: string[]) {
  if (!hasVenv()) await installPackages(createStackContext(), ['python3-venv'], 'Python, for tests');
  const folder = join(temporaryFolder(), 'python');
  await run('python3', ['-m', 'venv', folder]);
  const python = join(folder, 'bin', 'python');
  await run(python, ['-m', 'pip', 'install', '--quiet', ...packages], { timeout: installMs });
  return {
    /** Returns the program's output. Rejects with its error if it fails. */
    async run(args: string[], env: Record<string, string>): Promise<string> {
      const { stdout } = await run(python, args, { env: { ...process.env, ...env } });
      return stdout;
    },
  };
}
