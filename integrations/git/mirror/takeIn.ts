import type { Readable } from 'node:stream';
import { DomainError } from '../../../base/errors.ts';
import { forgiven } from '../process/environment.ts';
import { asLines, type Git } from '../process/git.ts';
import { gitError } from '../rules/failures.ts';
import type { RefManifest } from '../types.ts';
import { packIn } from './bundle.ts';
import { packsIn, removeLeftovers, removePacksBut, writeShallow } from './repository.ts';

/** Takes in a bundle that we have made. Git checks its hashes; its contents were checked before. */
export async function takeInOwn(git: Git, bundle: Readable, { shallow, filter }: RefManifest): Promise<void> {
  await writeShallow(git, shallow);
  const args = ['index-pack', '--stdin', '--fix-thin', ...(filter === null ? [] : ['--promisor'])];
  await git.do(args, { input: await packIn(bundle) });
}

/** Whether the repository has every object that its refs, or these ids, need. */
export async function isConnected(git: Git, filter: RefManifest['filter'], ids?: readonly string[]): Promise<boolean> {
  const partial = filter === null ? [] : ['--exclude-promisor-objects'];
  const which = ids === undefined ? ['--all'] : ['--stdin', '--not', '--all'];
  const input = ids && asLines(ids);
  return (await git.run(['rev-list', '--objects', '--quiet', ...partial, ...which], { input })).code === 0;
}

/** Takes in untrusted objects. Fsck checks each. All are removed again unless the targets are complete. */
export async function takeInForeign(
  git: Git,
  bundle: Readable,
  options: { targets: readonly string[]; filter: RefManifest['filter']; maxBytes: number },
): Promise<void> {
  const before = await packsIn(git);
  try {
    // In a partial clone, objects may refer to missing ones.
    const strict = `--strict=${forgiven.map((name) => `${name}=ignore`).join(',')}`;
    const check = options.filter === null ? strict : '--fsck-objects';
    await git.do(['index-pack', '--stdin', '--fix-thin', check, `--max-input-size=${options.maxBytes}`], {
      input: await packIn(bundle),
    });
    await requireConnected(git, options);
  } catch (error) {
    await removePacksBut(git, before);
    await removeLeftovers(git);
    // index-pack may blame the remote, but here the sender is to blame.
    if (!(error instanceof DomainError) || error.code !== 'GIT_REMOTE_FAILED') throw error;
    throw gitError('GIT_OBJECTS_REFUSED', 'The bundle is incomplete or damaged.', { cause: error });
  }
}

export async function requireConnected(
  git: Git,
  { targets, filter }: { targets: readonly string[]; filter: RefManifest['filter'] },
): Promise<void> {
  if (await isConnected(git, filter, targets)) return;
  throw gitError('GIT_OBJECTS_REFUSED', 'The bundle lacks objects that its refs need.');
}
