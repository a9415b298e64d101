import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync, writeSync, write as writeTo } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

/** Where a log goes. */
export interface LogTarget {
  /** Says how many bytes it took. Rejects where it takes none now, and holds up neither this process nor its end. */
  write(bytes: Buffer): Promise<number>;
  /** The same at once, for the end of the process. */
  writeNow(bytes: Buffer): number;
}

const standardErrorFd = 2;
const writeAsync = promisify(writeTo);

/** A file of at most so many bytes, give or take a write; the one before it is kept as `.1`. */
export function fileTarget(path: string, maxBytes: number): LogTarget {
  let file: { descriptor: number; size: number } | undefined;

  /** At once, which is rare and short: a process that ends meanwhile has its last lines in it. */
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

/** Standard error, whatever is behind it. */
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
 * A terminal by a description of its own that does not block: a person may have stopped it with Ctrl-S, and the one that
 * we were started with belongs to other programs too.
 */
function openTerminal(): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/proc/self/fd/${standardErrorFd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return standardErrorFd; // not on Linux
  }
}

/** A pipe or a socket: libuv does not block on it, and waits for its reader without a thread. */
function streamTarget(): LogTarget {
  process.stderr.on('error', () => undefined); // each write tells its own
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        process.stderr.write(bytes, (error) => (error == null ? resolve(bytes.length) : reject(error)));
      }),
    writeNow: (bytes) => writeSync(standardErrorFd, bytes),
  };
}
