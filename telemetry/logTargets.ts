import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync, writeSync, write as writeTo } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

/** Where a log goes. */
export interface LogTarget {
  /** Resolves with the number of bytes taken, or rejects when the target takes none now. Never blocks the process. */
  write(bytes: Buffer): Promise<number>;
  /** The same synchronously, for the end of the process. */
  writeNow(bytes: Buffer): number;
}

const standardErrorFd = 2;
const writeAsync = promisify(writeTo);

/** A file of at most `maxBytes`, give or take a write. The file before it is kept as `.1`. */
export function fileTarget(path: string, maxBytes: number): LogTarget {
  let file: { descriptor: number; size: number } | undefined;

  /** Synchronous, which is rare and short: a process that ends meanwhile still writes its last lines. */
  function opened(): { descriptor: number; size: number } {
    if (file !== undefined && file.size < maxBytes) return file;
    if (file !== undefined) {
      renameSync(path, `${path}.1`);
      closeSync(file.descriptor);
      file = undefined;
    }
    mkdirSync(dirname(path), { recursive: true });
    const descriptor = openSync(path, 'a');
    file = { descriptor, size: fstatSync(descriptor).size };
    return opened();
  }

  return {
    async write(bytes) {
      const current = opened();
      const { bytesWritten } = await writeAsync(current.descriptor, bytes);
      current.size += bytesWritten;
      return bytesWritten;
    },
    writeNow: (bytes) => writeSync(opened().descriptor, bytes),
  };
}

/** Standard error, whatever kind of file it is. */
export function standardErrorTarget(): LogTarget {
  const stat = fstatSync(standardErrorFd);
  if (!stat.isFile() && !stat.isCharacterDevice()) return streamTarget();
  const descriptor = stat.isFile() ? standardErrorFd : openTerminal();
  return {
    write: async (bytes) => (await writeAsync(descriptor, bytes)).bytesWritten,
    writeNow: (bytes) => writeSync(descriptor, bytes),
  };
}

/**
 * Opens the terminal anew, without blocking: a person may have stopped it with Ctrl-S, and the inherited descriptor is
 * shared with other programs.
 */
function openTerminal(): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/proc/self/fd/${standardErrorFd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return standardErrorFd; // not on Linux
  }
}

/** A pipe or a socket. libuv does not block on it, and waits for its reader without a thread. */
function streamTarget(): LogTarget {
  process.stderr.on('error', () => undefined); // each write reports its own
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        process.stderr.write(bytes, (error) => (error == null ? resolve(bytes.length) : reject(error)));
      }),
    writeNow: (bytes) => writeSync(standardErrorFd, bytes),
  };
}
