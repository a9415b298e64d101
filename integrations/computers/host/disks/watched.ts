import { chmodSync, chownSync, existsSync, renameSync, rmSync } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { makeFolderDurably, syncFolder } from '../../../../disk/durable.ts';
import { run } from '../../spawner/spawner.ts';
import { feed, openProgram, outputOf } from '../../spawner/streams.ts';
import { findSystemProgram } from '../../system/programs.ts';
import { type Disks, roomIn, unfinished } from './disks.ts';

const copyTimeoutMs = 10 * 60_000;
const isGnu = process.platform === 'linux';
const copyOptions = isGnu ? ['--archive', '--reflink=auto'] : ['-a'];
const removeOptions = isGnu ? ['-rf', '--one-file-system'] : ['-rf'];

/** Keeps homes as ordinary folders. The host's watcher enforces their limits as well as it can. */
export function watchedDisks(homes: string): Disks {
  return {
    kind: 'watched',
    async create(home, { uid }) {
      await makeFolderDurably(home, 0o700);
      chmodSync(home, 0o700);
      if (uid !== undefined) chownSync(home, uid, uid);
    },
    async snapshot(from, to, signal) {
      await this.remove(unfinished(to));
      const copy = [...copyOptions, '--', from, unfinished(to)];
      await run('cp', copy, { timeoutMs: copyTimeoutMs, signal });
    },
    async finish(to, { uid, signal, onWhole }) {
      await giveAll(unfinished(to), uid, signal);
      await syncAll(unfinished(to));
      onWhole?.();
      await this.remove(to);
      renameSync(unfinished(to), to);
      await syncFolder(homes);
    },
    room: () => roomIn(homes),
    async usedBytes(home) {
      const [program = 'sh', ...before] = [...(await seeingAll()), ...counting];
      return Number(/^\d+/.exec(await run(program, [...before, home]))?.[0] ?? 0) * 1_024;
    },
    async remove(home) {
      if (!existsSync(home)) return;
      // `chmod` opens folders that their owner has closed to itself. `rm` handles trees that are too deep for rmSync.
      if (process.getuid?.() !== 0) await run('chmod', ['-R', 'u+rwx', '--', home], { timeoutMs: copyTimeoutMs });
      await run('rm', [...removeOptions, '--', home], { timeoutMs: copyTimeoutMs });
      rmSync(home, { recursive: true, force: true });
    },
    async tend() {},
    fault: () => undefined,
    async mend() {},
    async close() {},
  };
}

/** Flushes a whole file system to the disk, in one call for a tree of any size. */
export async function syncAll(folder: string): Promise<void> {
  await run('sync', isGnu ? ['-f', folder] : [], { timeoutMs: copyTimeoutMs });
}

// A file that vanishes makes `du` fail, but the rest is counted.
const counting = ['sh', '-c', 'du -skx -- "$1" || :', 'sh'];

const root = ['--unshare-user', '--uid', '0', '--gid', '0', '--cap-add', 'CAP_DAC_READ_SEARCH'];
let allSeen: Promise<string[]> | undefined;

/**
 * Starts a program as the root of a namespace, so that it also reads folders that their owner (our user) has closed.
 * Empty for root, and without namespaces: then those are left out.
 */
export function seeingAll(): Promise<string[]> {
  allSeen ??= findNamespace();
  return allSeen;
}

async function findNamespace(): Promise<string[]> {
  const bwrap = process.getuid?.() === 0 ? undefined : findSystemProgram('bwrap');
  if (bwrap === undefined) return [];
  const args = ['--die-with-parent', ...root, '--dev-bind', '/', '/', '--'];
  return run(bwrap, [...args, 'true']).then(
    () => [bwrap, ...args],
    () => [],
  );
}

/** Gives a home and everything in it to a user. Targets of links keep their owner. Files keep their set-user-ID bits. */
export async function giveAll(home: string, uid: number | undefined, signal: AbortSignal): Promise<void> {
  if (uid === undefined) return;
  const files = await filesWithBits(home, signal);
  await run('chown', ['-R', '--no-dereference', `${uid}:${uid}`, '--', home], { timeoutMs: copyTimeoutMs, signal });
  for (const [bit, change] of clearedBits) {
    const paths = files.filter(({ mode }) => (mode & bit) !== 0).map(({ path }) => `${path}\0`);
    if (paths.length > 0) await changeModes(change, Buffer.from(paths.join(''), 'latin1'), { uid, signal });
  }
}

/** The bits of a file that chown clears, and how chmod sets them again. */
const clearedBits = [
  [0o4000, 'u+s'],
  [0o2000, 'g+s'],
] as const;
/** Their paths are held in memory. Files beyond this number lose their bits. */
const mostWithBits = 10_000;
const finding = ['-c', `find "$1" -xdev -type f -perm /6000 -printf '%m %p\\0' | head -z -n "$2"`, 'sh'];

/**
 * Whether a home has files with such a bit. A change of their owner that btrfs sends is applied without the bit, because
 * the mode stays the same and is not sent. So a home that gets another owner then is saved as a whole.
 */
export async function hasSetIds(home: string, signal: AbortSignal): Promise<boolean> {
  return (await filesWithBits(home, signal, 1)).length > 0;
}

/** The regular files with such a bit. Their paths are bytes. */
async function filesWithBits(
  home: string,
  signal: AbortSignal,
  most = mostWithBits,
): Promise<{ mode: number; path: string }[]> {
  const found = await buffer(outputOf(await openProgram('sh', [...finding, home, String(most)], { signal })));
  const lines = found.toString('latin1').split('\0').slice(0, -1);
  return lines.map((line) => ({ mode: Number.parseInt(line, 8), path: line.slice(line.indexOf(' ') + 1) }));
}

/** With the rights of the user, so that it does nothing that the user's programs could not. */
async function changeModes(change: string, paths: Buffer, { uid, signal }: { uid: number; signal: AbortSignal }) {
  if (findSystemProgram('setpriv') === undefined) return;
  const through = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  // The user may have closed the folder of a file to itself.
  const fineCodes = [123];
  await feed(
    await openProgram('xargs', ['-0', 'chmod', change], { signal, through, fineCodes }),
    Readable.from([paths]),
  );
}
