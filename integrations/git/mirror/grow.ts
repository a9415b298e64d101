import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from './git.ts';
import { Listing } from './listing.ts';
import { fetchCommand, fetchKind, fetchMissing, fetchObjects } from './missing.ts';
import type { Remote } from './remote.ts';
import { namesIn, readShallow, writeShallow } from './repository.ts';

/** Commits of the first step back into the past. Each step asks for twice as many, up to a limit: what is cut is lost. */
const step = { first: 100, most: 2_000 };

/**
 * Whether what is kept is mostly the newest state of files. That is what older versions are deltas of: to have them made
 * of what is here, the server must be told of a commit that is here.
 */
export async function isMostlyNewest(git: Git, remote: Remote, tip: string): Promise<boolean> {
  if ((await readShallow(git)).length > 0) return true;
  const commit = await git.run(['cat-file', '--end-of-options', 'commit', tip]);
  const tree = /^tree ([0-9a-f]{40})\n/.exec(String(commit.output))?.[1];
  if (commit.code !== 0 || tree === undefined) return false;
  // Folders may come after files. Those of one commit are few.
  if ((await git.run(['cat-file', '-e', '--end-of-options', tree])).code !== 0) await fetchObjects(git, remote, [tree]);
  await fetchKind(git, remote, { filter: 'blob:none', roots: [tree] });
  const args = ['rev-list', '--objects', '--no-object-names', '--missing=allow-any', '--end-of-options', tree];
  await using listed = await Listing.of(git, args);
  const newest = await sizeOnDisk(git, listed);
  const packs = join(git.dir, 'objects', 'pack');
  let kept = 0;
  for (const name of await namesIn(packs)) if (name.endsWith('.pack')) kept += (await stat(join(packs, name))).size;
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

/** Completes the newest state by what is missing, and goes from there into the past, as a shallow clone that deepens. */
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
    await remote.do(git, [
      ...fetchCommand,
      '--no-filter',
      '--no-tags',
      `--deepen=${commits}`,
      '--end-of-options',
      'origin',
      refspec,
    ]);
    // It has got no further: the rest is asked for in another way.
    if ((await readShallow(git)).join() === before.join()) return writeShallow(git, []);
  }
}
