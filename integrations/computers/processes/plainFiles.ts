import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

class NotPlain extends Error {
  override readonly name = 'NotPlain';
  readonly code = 'ENOENT';
}

/**
 * Opens a file in a folder of a computer's user. The reader may be root, so it follows no link, neither of the folder
 * nor of the file. It waits for no FIFO, and anything but a regular file counts as missing.
 */
export async function openPlainFile(folder: string, name: string): Promise<FileHandle> {
  const parent = await openFolder(folder);
  try {
    const file = await open(`/proc/self/fd/${parent.fd}/${name}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(asAbsent);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new NotPlain('It is no regular file.');
  } finally {
    await parent.close();
  }
}

/** The text of a small file. Throws `ENOENT` for a large one too. */
export async function readPlainFile(folder: string, name: string, maxBytes: number): Promise<string> {
  const file = await openPlainFile(folder, name);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw new NotPlain('It is too large.');
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await file.read(bytes, 0, size, 0);
    return bytes.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Calls `read` with a path that leads to this folder even if the folder is renamed. */
export async function inPlainFolder<T>(folder: string, read: (path: string) => Promise<T>): Promise<T> {
  const parent = await openFolder(folder);
  try {
    return await read(`/proc/self/fd/${parent.fd}`);
  } finally {
    await parent.close();
  }
}

function openFolder(folder: string): Promise<FileHandle> {
  return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(asAbsent);
}

/** A link counts as missing. */
function asAbsent(error: NodeJS.ErrnoException): never {
  if (error.code === 'ELOOP' || error.code === 'ENOTDIR') throw new NotPlain(error.message);
  throw error;
}
