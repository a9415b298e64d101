import { asLines, type Git } from '../process/git.ts';
import { gitError } from '../rules/failures.ts';
import { cannotBeBeside, isAcceptableRef } from '../rules/names.ts';
import { linesOf } from '../rules/remoteRefs.ts';
import type { RefManifest, RefUpdate } from '../types.ts';

export interface RefMove {
  name: string;
  /** The expected value before the move; null means absent. Without it, any value is accepted. */
  from?: string | null;
  /** Null removes the ref. */
  to: string | null;
}

const nowhere = '0'.repeat(40);

/**
 * Arguments that move refs in two transactions: removals first, then updates. Each happens as a whole. Git refuses to
 * make `a/b` while a branch `a` exists, even if the same transaction removes `a`.
 */
export function movingRefs(moves: readonly RefMove[]): [args: string[], call: { input: string }] {
  const gone = moves.flatMap(({ name, from, to }) =>
    to === null ? `delete ${name}${from == null ? '' : ` ${from}`}` : [],
  );
  const moved = moves.flatMap(({ name, from, to }) =>
    to === null ? [] : `update ${name} ${to}${from === undefined ? '' : ` ${from ?? nowhere}`}`,
  );
  const lines = [gone, moved].flatMap((step) => (step.length === 0 ? [] : ['start', ...step, 'prepare', 'commit']));
  return [['update-ref', '--no-deref', '--stdin'], { input: asLines(lines) }];
}

/** Moves refs as asked, if they are where the caller expects. A ref that is already at its target is left alone. */
export async function moveRefs(git: Git, now: RefManifest, refs: readonly RefUpdate[]): Promise<void> {
  const moves = refs.filter(({ name, to }) => (now.refs[name] ?? null) !== to);
  for (const { name, from } of moves) {
    if (!isAcceptableRef(name)) throw gitError('GIT_BRANCH_NAME_REFUSED', 'A ref has a name that is not allowed.');
    if ((now.refs[name] ?? null) !== from) throw gitError('GIT_CONFLICT', 'A branch has moved in the meantime.');
  }
  if (moves.length === 0) return;
  const outcome = await git.run(...movingRefs(moves));
  if (outcome.code === 0) return;
  throw /cannot (?:create|lock ref)|exists/.test(outcome.said)
    ? gitError('GIT_CONFLICT', 'A branch cannot have this name beside those that are there.')
    : gitError('GIT_OBJECTS_REFUSED', 'A ref cannot be moved to the object that it is to name.');
}

/**
 * Restores the tags that a fetch moved or removed. Like branches, they belong to the user, who may have made them in a
 * tree. New tags stay, unless git cannot keep them beside the restored ones.
 */
export async function keepTags(git: Git, { refs: before }: RefManifest): Promise<void> {
  const kept = Object.keys(before).filter((name) => name.startsWith('refs/tags/'));
  if (kept.length === 0) return;
  const { output } = await git.do(['for-each-ref', '--format=%(objectname) %(refname)', 'refs/tags']);
  const now = new Map(linesOf(output).map((line) => [line.toString('utf8', 41), line.toString('latin1', 0, 40)]));
  const lost = kept.filter((name) => now.get(name) !== before[name]);
  if (lost.length === 0) return;
  const inTheWay = [...now.keys()].filter(cannotBeBeside(lost));
  const removed = inTheWay.map((name) => ({ name, to: null }));
  await git.do(...movingRefs([...removed, ...lost.map((name) => ({ name, to: before[name] ?? null }))]));
}
