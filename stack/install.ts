import { existsSync } from 'node:fs';
import { CommandError, runCommand } from './commands.ts';
import { findProgram, type StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { waitForLock } from './fileLock.mjs';
import { timed } from './report.ts';
import { serviceLog } from './services.ts';

/** Whether this start may install packages: root, on a system with apt. */
export function canInstall(context: Pick<StackContext, 'environment'>): boolean {
  return process.getuid?.() === 0 && findProgram('apt-get', context.environment) !== undefined;
}

/**
 * Installs Debian packages as root. Only the download can be aborted. An interrupted dpkg would leave the package
 * database in need of repair, and that step takes only seconds.
 */
export async function installPackages(context: StackContext, names: string[], purpose: string): Promise<void> {
  const lock = await waitForLock(existsSync('/run/lock') ? '/run/lock/atrium-apt' : '/tmp/atrium-apt', context);
  const logFile = serviceLog(context, 'install');
  const environment = { ...context.environment, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (args: string[], options: { signal?: AbortSignal; outlives?: boolean }) =>
    runCommand('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], { logFile, environment, ...options });
  const install = ['install', '--yes', '--no-install-recommends'];
  try {
    await timed(
      context.report,
      { announce: `Installing ${purpose} (${names.join(', ')})`, done: `${purpose} installed` },
      async () => {
        await apt(['update'], { signal: context.signal });
        await apt([...install, '--download-only', ...names], { signal: context.signal });
        await apt([...install, ...names], { outlives: true });
      },
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new StackError(`${purpose} could not be installed: ${error.reason} — the whole log is ${logFile}`);
  } finally {
    lock.release();
  }
}

/** The packages whose programs are missing here. */
export function missingPackages(
  packages: Readonly<Record<string, string>>,
  { environment }: Pick<StackContext, 'environment'>,
): string[] {
  const missing = Object.entries(packages).filter(([program]) => findProgram(program, environment) === undefined);
  return missing.map(([, name]) => name);
}

/** Installs optional packages, if root may do so. Reports a failure and what it costs. */
export async function installOptional(
  context: StackContext,
  names: string[],
  { purpose, without }: { purpose: string; without: string },
): Promise<void> {
  if (names.length === 0 || !canInstall(context)) return;
  try {
    await installPackages(context, names, purpose);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof StackError)) throw error;
    context.report(`${error.message}. ${without}`);
  }
}

/** For `atrium doctor`: the missing packages and how to get them, or `there` if none is missing. */
export function describePackages(
  context: Pick<StackContext, 'environment'>,
  names: readonly string[],
  there: string,
): { missing: boolean; detail: string } {
  if (names.length === 0) return { missing: false, detail: there };
  if (canInstall(context)) return { missing: false, detail: `${names.join(', ')} missing; "npm start" installs it` };
  return { missing: true, detail: `missing; install it (Debian and Ubuntu: apt-get install ${names.join(' ')})` };
}
