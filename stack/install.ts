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
 * Installs Debian packages as root. Only the download can be broken off: to stop dpkg in the middle would leave the
 * system's package database to be repaired by hand, and that step takes seconds.
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
