import { spawn } from 'node:child_process';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { gitError } from '../rules/failures.ts';

export interface FolderLock extends AsyncDisposable {
  /** Given to each process that works in the folder: the lock lasts until the last of them has ended. */
  descriptor: number;
}

/**
 * Locks a mirror's folder against the other processes of this machine, containers included. It is a flock on an open
 * file that git inherits: when our process is killed, the next one waits for what git still does there.
 */
export async function lockFolder(file: string, signal: AbortSignal): Promise<FolderLock> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'a', 0o600);
  try {
    await take(handle, signal);
    return { descriptor: handle.fd, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function take(handle: FileHandle, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn('flock', ['--exclusive', '3'], {
    env: { PATH: '/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin' },
    stdio: ['ignore', 'ignore', 'ignore', handle.fd],
  });
  const kill = () => child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('close', resolve);
      child.once('error', () =>
        reject(gitError('GIT_NOT_INSTALLED', 'The program "flock" is not installed on this machine.')),
      );
    });
    signal.throwIfAborted();
    if (code !== 0) throw gitError('GIT_FAILED', 'The repository’s folder cannot be locked.');
  } finally {
    signal.removeEventListener('abort', kill);
  }
}
