import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { DomainError } from '../../../base/errors.ts';
import { gitError } from '../rules/failures.ts';
import { isAcceptableRef } from '../rules/refName.ts';
import type { RefManifest, RefUpdate } from '../types.ts';
import { packIn } from './bundleFile.ts';
import type { Git } from './git.ts';
import { movingRefs } from './refMoves.ts';
import { namesIn, removeLeftovers, writeShallow } from './repository.ts';

/** Takes in a bundle that we have made ourselves. Its hashes are checked, its contents have been. */
export async function takeInOwn(git: Git, bundle: Readable, { shallow, filter }: RefManifest): Promise<void> {
  await writeShallow(git, shallow);
  const args = ['index-pack', '--stdin', '--fix-thin', ...(filter === null ? [] : ['--promisor'])];
  await git.do(args, { input: await packIn(bundle) });
}

/** Whether every object that refs need is there. */
export async function isConnected(git: Git, filter: RefManifest['filter'], ids?: readonly string[]): Promise<boolean> {
  const partial = filter === null ? [] : ['--exclude-promisor-objects'];
  const which = ids === undefined ? ['--all'] : ['--stdin', '--not', '--all'];
  const outcome = await git.run(['rev-list', '--objects', '--quiet', ...partial, ...which], {
    ...(ids !== undefined && { input: ids.map((id) => `${id}\n`).join('') }),
  });
  return outcome.code === 0;
}

const ignored = ['zeroPaddedFilemode', 'badTimezone', 'missingSpaceBeforeDate']
  .map((name) => `${name}=ignore`)
  .join(',');

/**
 * Takes in objects that a stranger has made: each is checked by fsck, and is removed again unless it belongs to what
 * refs are moved to.
 */
export async function takeInForeign(
  git: Git,
  bundle: Readable,
  options: { targets: readonly string[]; filter: RefManifest['filter']; maxBytes: number },
): Promise<void> {
  const packs = join(git.dir, 'objects', 'pack');
  const before = new Set(await namesIn(packs));
  try {
    // Of a partial clone, objects may refer to what is not here.
    const check = options.filter === null ? `--strict=${ignored}` : '--fsck-objects';
    await git.do(['index-pack', '--stdin', '--fix-thin', check, `--max-input-size=${options.maxBytes}`], {
      input: await packIn(bundle),
    });
    await requireConnected(git, options);
  } catch (error) {
    for (const name of await namesIn(packs)) if (!before.has(name)) await rm(join(packs, name), { force: true });
    await removeLeftovers(git, { keepTemporaryPacks: false });
    throw foreign(error);
  }
}

/** What index-pack does not like is the sender's doing, whatever words it finds for that. */
function foreign(error: unknown): unknown {
  if (!(error instanceof DomainError) || error.code !== 'GIT_REMOTE_FAILED') return error;
  return gitError('GIT_OBJECTS_REFUSED', 'The bundle is incomplete or damaged.', { cause: error });
}

export async function requireConnected(
  git: Git,
  { targets, filter }: { targets: readonly string[]; filter: RefManifest['filter'] },
): Promise<void> {
  if (await isConnected(git, filter, targets)) return;
  throw gitError('GIT_OBJECTS_REFUSED', 'The bundle lacks objects that its refs need.');
}

/** Moves refs, all or none of them. One that is there already is fine: the call may be a repetition. */
export async function moveRefs(git: Git, now: RefManifest, refs: readonly RefUpdate[]): Promise<void> {
  const moves = refs.filter(({ name, to }) => (now.refs[name] ?? null) !== to);
  for (const { name, from } of moves) {
    if (!isAcceptableRef(name)) throw gitError('GIT_BRANCH_NAME_REFUSED', 'A ref has a name that is not allowed.');
    if ((now.refs[name] ?? null) !== from) throw gitError('GIT_CONFLICT', 'A branch has moved in the meantime.');
  }
  if (moves.length === 0) return;
  const outcome = await git.run(...movingRefs(moves));
  if (outcome.code === 0) return;
  const isInTheWay = /cannot (?:create|lock ref)|exists/.test(outcome.said);
  throw isInTheWay
    ? gitError('GIT_CONFLICT', 'A branch cannot have this name beside those that are there.')
    : gitError('GIT_OBJECTS_REFUSED', 'A ref cannot be moved to what it shall name.');
}
