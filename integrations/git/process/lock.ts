import { spawn } from 'node:child_process';
import { type FileHandle, mkdir, open, stat, utimes } from 'node:fs/promises';
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
  const lock = await lockFile(file, signal, []);
  if (lock === undefined) throw gitError('GIT_FAILED', 'The repository’s folder cannot be locked.');
  // For those who want to know when it was last used.
  const now = new Date();
  await utimes(file, now, now);
  return lock;
}

/** The same without waiting: undefined while somebody works there. */
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

/** Whoever removes a folder removes its lock: whoever has waited for that one holds a file that nobody else finds. */
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
