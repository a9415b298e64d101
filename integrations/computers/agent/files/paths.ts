import { constants } from 'node:fs';
import { access, lstat, mkdir, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import { folderOf, makeFolderDurably, syncFolder } from '../../../../disk/durable.ts';
import { Refusal } from '../../protocol/agentRequests.ts';
import { refuseKept } from './kept.ts';
import { removeTree, run } from './programs.ts';

/** Deletes a file, a link (not its target), or a folder. */
export async function deletePath(path: Buffer, options: { recursive: boolean }): Promise<void> {
  await refuseKept(path);
  await removePath(path, options);
  await syncFolder(folderOf(path));
}

async function removePath(path: Buffer, { recursive }: { recursive: boolean }): Promise<void> {
  const stats = await lstat(path);
  if (!stats.isDirectory()) return unlink(path);
  if (!recursive) return rmdir(path);
  // `rm` handles any depth and any name.
  await run('rm', ['-rf', '--one-file-system', '--'], path);
  if (await exists(path)) throw new Refusal('FILE_ACCESS_DENIED');
}

/** Moves a file, a link (not its target), or a folder. A move that fails leaves the source whole. */
export async function movePath(path: Buffer, to: Buffer, options: { replace: boolean }): Promise<void> {
  await refuseKept(path);
  await refuseKept(to);
  try {
    await inTurn(() => renameUnlessTaken(path, to, options));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    // Temporary files are on another file system, so the rename failed.
    return moveAcross(path, to, options);
  }
  await Promise.all([path, to].map((each) => syncFolder(folderOf(each))));
}

/**
 * Moves to another file system. The target gets its name when it is completely on the disk. Only then is the source
 * renamed away, in one step. A crash in between leaves both.
 */
async function moveAcross(path: Buffer, to: Buffer, options: { replace: boolean }): Promise<void> {
  // `realpath` drops a last part such as `.`, which cannot be renamed.
  const source = (await lstat(path)).isSymbolicLink() ? path : await realpath(path, { encoding: 'buffer' });
  // Do not copy a source that cannot be removed.
  await access(folderOf(source), constants.W_OK | constants.X_OK);
  const [copy, removed] = [temporaryBeside(to), temporaryBeside(source)];
  try {
    await run('cp', ['-aT', '--'], source, copy);
    await run('sync', ['-f', '--'], folderOf(to));
    await inTurn(async () => {
      const isNew = !(await exists(to));
      await renameUnlessTaken(copy, to, options);
      await syncFolder(folderOf(to));
      try {
        await rename(source, removed);
      } catch (error) {
        // Undo only a new name: a file that was replaced is gone, so the copy stays in its place.
        if (isNew) await rename(to, copy);
        throw error;
      }
    });
  } catch (error) {
    await removeTree(copy).catch(() => undefined);
    throw error;
  }
  await removeTree(removed);
  await syncFolder(folderOf(source));
}

async function renameUnlessTaken(path: Buffer, to: Buffer, { replace }: { replace: boolean }): Promise<void> {
  if (!replace && (await exists(to))) throw new Refusal('FILE_EXISTS');
  await rename(path, to);
}

/**
 * A new name in the same folder, for a file that is not complete yet or is about to be removed. Uses the global
 * `crypto`, which Node loads on first use. An import would make the agent start 10 ms later.
 */
export function temporaryBeside(path: Buffer): Buffer {
  const name = Buffer.from(crypto.getRandomValues(new Uint8Array(9))).toString('hex');
  return Buffer.concat([folderOf(path), Buffer.from(`/.atrium-${name}.tmp`)]);
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
