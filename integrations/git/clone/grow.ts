import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { packFolder, packsIn, readShallow, writeShallow } from '../mirror/repository.ts';
import type { Git } from '../process/git.ts';
import type { Remote } from '../remote/remote.ts';
import { fetchCommand, fetchKind, fetchMissing, fetchObjects, Listing } from './missing.ts';

/** Commits per step into the past. Each step doubles up to `most`: a step whose connection breaks is lost. */
const step = { first: 100, most: 2_000 };

/**
 * Whether the kept objects are mostly the newest versions of files. Older versions are deltas against the newest ones.
 * The server sends such deltas only if git names a commit that it has.
 */
export async function isMostlyNewest(git: Git, remote: Remote, tip: string): Promise<boolean> {
  if ((await readShallow(git)).length > 0) return true;
  const commit = await git.run(['cat-file', '--end-of-options', 'commit', tip]);
  const tree = /^tree ([0-9a-f]{40})\n/.exec(String(commit.output))?.[1];
  if (commit.code !== 0 || tree === undefined) return false;
  // In a pack, folders may come after files, so the cut may have lost them. One commit has few folders.
  if ((await git.run(['cat-file', '-e', '--end-of-options', tree])).code !== 0) await fetchObjects(git, remote, [tree]);
  await fetchKind(git, remote, { filter: 'blob:none', roots: [tree] });
  const args = ['rev-list', '--objects', '--no-object-names', '--missing=allow-any', '--end-of-options', tree];
  await using listed = await Listing.of(git, args);
  const newest = await sizeOnDisk(git, listed);
  let kept = 0;
  for (const name of await packsIn(git)) kept += (await stat(join(packFolder(git), `${name}.pack`))).size;
  return newest > kept / 2;
}

async function sizeOnDisk(git: Git, ids: Listing): Promise<number> {
  let sum = 0;
  let open = '';
  await git.do(['cat-file', '--batch-check=%(objectsize:disk)', '--buffer'], {
    input: ids.open(),
    output(chunk) {
      const lines = `${open}${chunk.toString('latin1')}`.split('\n');
      open = lines.pop() ?? '';
      for (const size of lines) sum += Number.parseInt(size, 10) || 0;
    },
  });
  return sum;
}

/** Completes the newest versions, and goes from there into the past, like a shallow clone that deepens. */
export async function growFrom(git: Git, remote: Remote, branch: string, tip: string): Promise<void> {
  if ((await readShallow(git)).length === 0) {
    await fetchMissing(git, remote, { filter: null, roots: [`${tip}^{tree}`] });
    await writeShallow(git, [tip]);
    await git.do(['update-ref', '--no-deref', '--end-of-options', `refs/remotes/origin/${branch}`, tip]);
  }
  const refspec = `+refs/heads/${branch}:refs/remotes/origin/${branch}`;
  for (let commits = step.first; ; commits = Math.min(commits * 2, step.most)) {
    const before = await readShallow(git);
    if (before.length === 0) return;
    const options = ['--no-filter', '--no-tags', `--deepen=${commits}`];
    await remote.do(git, [...fetchCommand, ...options, '--end-of-options', 'origin', refspec]);
    // If a step brings nothing, the caller fetches the rest in another way.
    if ((await readShallow(git)).join() === before.join()) return writeShallow(git, []);
  }
}
