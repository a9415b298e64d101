import { spawn } from 'node:child_process';
import { type FileHandle, mkdir, open, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { gitError } from '../rules/failures.ts';

export interface FolderLock extends AsyncDisposable {
  /** Every process that works in the folder inherits this. The lock lasts until the last of them ends. */
  descriptor: number;
}

/**
 * Locks a mirror's folder against all other processes of this machine, also in containers. The lock is a flock on an
 * open file that git inherits: if our process is killed, the next one waits until git has ended.
 */
export async function lockFolder(file: string, signal: AbortSignal): Promise<FolderLock> {
  const lock = await lockFile(file, signal, []);
  if (lock === undefined) throw gitError('GIT_FAILED', 'The repository’s folder cannot be locked.');
  // The time of the last use decides what is evicted first.
  const now = new Date();
  await utimes(file, now, now);
  return lock;
}

/** The same without waiting: undefined while another process holds the lock. */
export function tryLockFolder(file: string, signal: AbortSignal): Promise<FolderLock | undefined> {
  return lockFile(file, signal, ['--nonblock']);
}

async function lockFile(file: string, signal: AbortSignal, options: string[]): Promise<FolderLock | undefined> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  for (;;) {
    const handle = await open(file, 'a', 0o600);
    let isHeld = false;
    try {
      if (!(await take(handle, signal, options))) return undefined;
      isHeld = await isAt(file, handle);
      if (isHeld) return { descriptor: handle.fd, [Symbol.asyncDispose]: () => handle.close() };
    } finally {
      if (!isHeld) await handle.close();
    }
  }
}

/** Whether the locked file is still the one at the path: removing a folder removes its lock file too. */
async function isAt(file: string, handle: FileHandle): Promise<boolean> {
  const [held, found] = await Promise.all([handle.stat(), stat(file).catch(() => undefined)]);
  return found !== undefined && found.ino === held.ino && found.dev === held.dev;
}

async function take(handle: FileHandle, signal: AbortSignal, options: string[]): Promise<boolean> {
  signal.throwIfAborted();
  const child = spawn('flock', ['--exclusive', ...options, '3'], {
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
    return code === 0;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}
