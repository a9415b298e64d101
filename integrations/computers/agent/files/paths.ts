import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, lstat, mkdir, readFile, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import { folderOf, makeFolderDurably, syncFolder } from '../../../../disk/durable.ts';
import { Refusal } from '../../protocol/agentRequests.ts';

/** Deletes a file, a link itself, or a folder. */
export async function deletePath(path: Buffer, options: { recursive: boolean }): Promise<void> {
  await removePath(path, options);
  await syncFolder(folderOf(path));
}

async function removePath(path: Buffer, { recursive }: { recursive: boolean }): Promise<void> {
  const stats = await lstat(path);
  if (!stats.isDirectory()) return unlink(path);
  if (await isKept(path)) throw new Refusal('FILE_ACCESS_DENIED');
  if (!recursive) return rmdir(path);
  // `rm` handles any depth and any name.
  await run('rm', ['-rf', '--one-file-system', '--'], path);
  if (await exists(path)) throw new Refusal('FILE_ACCESS_DENIED');
}

/**
 * Whether a folder must stay: the home, a mount point, or a folder that contains one. Without this check `rm` would
 * empty it before it fails.
 */
async function isKept(path: Buffer): Promise<boolean> {
  const real = await realpath(path, { encoding: 'buffer' });
  const folder = Buffer.concat([real, Buffer.from('/')]);
  const kept = [Buffer.from(process.cwd()), ...(await mountPoints())];
  return kept.some((each) => each.equals(real) || real.equals(root) || each.subarray(0, folder.length).equals(folder));
}

const root = Buffer.from('/');

async function mountPoints(): Promise<Buffer[]> {
  const mounts = await readFile('/proc/self/mountinfo', 'latin1');
  return mounts.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    const unescaped = point?.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    return unescaped === undefined ? [] : [Buffer.from(unescaped, 'latin1')];
  });
}

export async function movePath(path: Buffer, to: Buffer, options: { replace: boolean }): Promise<void> {
  await moveTo(path, to, options);
  await Promise.all([path, to].map((each) => syncFolder(folderOf(each))));
}

async function moveTo(path: Buffer, to: Buffer, { replace }: { replace: boolean }): Promise<void> {
  try {
    await inTurn(async () => {
      if (!replace && (await exists(to))) throw new Refusal('FILE_EXISTS');
      await rename(path, to);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    // Temporary files are on another file system, so the rename failed.
    await run('mv', ['-T', '--'], path, to);
    await run('sync', ['-f', '--'], folderOf(to));
  }
}

export async function makeFolder(path: Buffer, { parents }: { parents: boolean }): Promise<void> {
  if (parents) return makeFolderDurably(path);
  await mkdir(path);
  await syncFolder(folderOf(path));
}

async function exists(path: Buffer): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Runs a program on paths that need not be UTF-8. Node cannot pass such bytes as arguments, so xargs does. */
async function run(program: string, args: string[], ...paths: Buffer[]): Promise<void> {
  await access('/usr/bin/xargs', constants.X_OK);
  const child = spawn('/usr/bin/xargs', ['-0', program, ...args], { env: {}, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end(Buffer.concat(paths.flatMap((path) => [path, Buffer.alloc(1)])));
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', resolve);
  });
  if (code !== 0) throw new Refusal('FILE_ACCESS_DENIED');
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `work` after all earlier work has ended. Code that checks a name and then claims it must do both inside:
 * otherwise two callers could find the name free, and the second would overwrite the first one's file.
 */
export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const mine = last.then(work);
  last = mine.catch(() => undefined);
  return mine;
}
