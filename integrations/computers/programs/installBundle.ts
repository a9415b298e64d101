import { createHash } from 'node:crypto';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runHere } from '../spawner/runHere.ts';
import type { BundledProgram } from './bundle.ts';
import { install } from './install.ts';

const bundler = fileURLToPath(new URL('./bundleMain.ts', import.meta.url));
const bundle = fileURLToPath(new URL('./bundle.ts', import.meta.url));
const { resolve } = createRequire(import.meta.url);

/** A file and its hash. */
type Known = [path: string, hash: string];

/**
 * Puts a program of ours into a folder as one file, with the packages that it loads beside it, unless what is there was
 * made of the same files: a host that is started again is not to wait for that.
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
  const files = [bundle, ...sources, ...packages.map((each) => resolve(each.name)), ...made];
  const known = await Promise.all(files.map(async (path): Promise<Known> => [path, await hashOf(path)]));
  await install(madeOf, 0o644, (path) => writeFile(path, JSON.stringify(known)));
}

async function isMadeOf(madeOf: string, entry: string): Promise<boolean> {
  try {
    const known = JSON.parse(await readFile(madeOf, 'utf8')) as Known[];
    // A newer release may lie beside the one that it was made of.
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
