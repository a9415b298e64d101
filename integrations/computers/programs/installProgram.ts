import { chmod, copyFile, link, rm, stat, utimes } from 'node:fs/promises';
import { renameDurablySync } from '../../../disk/durable.ts';

/**
 * Puts a program where every user may run it: a second link to it, where every user may run that; else a copy. It is
 * large: what is there already stays.
 */
export async function installProgram(from: string, path: string): Promise<void> {
  const own = await stat(from);
  const there = await stat(path).catch(() => undefined);
  if (there?.size === own.size && there.mtimeMs === own.mtimeMs) return;
  const temporary = `${path}.${process.pid}`;
  await rm(temporary, { force: true });
  try {
    if ((own.mode & 0o005) !== 0o005) throw new Error('Others may not run it, and a link is no different.');
    await link(from, temporary);
  } catch {
    await copyFile(from, temporary);
    await chmod(temporary, 0o755);
    await utimes(temporary, own.atime, own.mtime); // by which it is known
  }
  renameDurablySync(temporary, path); // by its size and time it would be known, whatever is in it
}
