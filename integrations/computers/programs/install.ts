import { createHash } from 'node:crypto';
import { chmod, readFile, rename, rm } from 'node:fs/promises';

/** Puts a file there, whole, unless it is there already: what runs has the old one open, and keeps it. */
export async function install(path: string, mode: number, make: (path: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  await make(temporary);
  if ((await hashOf(path)) === (await hashOf(temporary))) {
    await rm(temporary);
    return;
  }
  await chmod(temporary, mode);
  await rename(temporary, path);
}

async function hashOf(path: string): Promise<string | undefined> {
  return readFile(path).then(
    (bytes) => createHash('sha256').update(bytes).digest('hex'),
    () => undefined,
  );
}
