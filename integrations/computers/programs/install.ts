import { createHash } from 'node:crypto';
import { chmod, copyFile, link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renameDurablySync } from '../../../disk/durable.ts';
import { runHere } from '../system/programs.ts';
import type { BundledProgram } from './bundle.ts';

const bundler = fileURLToPath(new URL('./bundle.ts', import.meta.url));
const { resolve } = createRequire(import.meta.url);

type Known = [path: string, hash: string];

/**
 * Installs a program as one file, together with the packages that it loads. Does nothing if the installed one was made
 * from the same files, so that a restarted host does not wait.
 */
export async function installBundle(entry: string, folder: string, name: string): Promise<void> {
  const madeOf = join(folder, `${name}.sources`);
  if (await isMadeOf(madeOf, entry)) return;
  const output = await runHere(process.execPath, ['--disable-warning=ExperimentalWarning', bundler, entry]);
  const { code, sources, packages } = JSON.parse(output) as BundledProgram;
  for (const { name: from, file } of packages)
    await install(join(folder, file), 0o644, (to) => copyFile(resolve(from), to));
  await install(join(folder, name), 0o644, (path) => writeFile(path, code));
  const made = [name, ...packages.map(({ file }) => file)].map((file) => join(folder, file));
  const files = [bundler, ...sources, ...packages.map((each) => resolve(each.name)), ...made];
  const known = await Promise.all(files.map(async (path): Promise<Known> => [path, await hashOf(path)]));
  await install(madeOf, 0o644, (path) => writeFile(path, JSON.stringify(known)));
}

async function isMadeOf(madeOf: string, entry: string): Promise<boolean> {
  try {
    const known = JSON.parse(await readFile(madeOf, 'utf8')) as Known[];
    // An older release in another folder may have installed it.
    if (!known.some(([path]) => path === entry)) return false;
    const same = await Promise.all(known.map(async ([path, hash]) => (await hashOf(path)) === hash));
    return same.every(Boolean);
  } catch {
    return false;
  }
}

async function hashOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

/**
 * Installs a large program that every user may run: as a hard link if every user may run the original, otherwise as a
 * copy. An unchanged program stays.
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
    await utimes(temporary, own.atime, own.mtime); // the next start compares this time
  }
  renameDurablySync(temporary, path); // otherwise a crash could leave a partial file with the right size and time
}

/** Replaces a file as a whole, unless its content is the same. Running programs keep the old file open. */
async function install(path: string, mode: number, make: (path: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  await make(temporary);
  if ((await hashOf(path).catch(() => undefined)) === (await hashOf(temporary))) {
    await rm(temporary);
    return;
  }
  await chmod(temporary, mode);
  await rename(temporary, path);
}
