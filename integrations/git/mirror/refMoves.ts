import { cannotBeBeside } from '../rules/refName.ts';
import { linesOf } from '../rules/remoteRefs.ts';
import type { RefManifest } from '../types.ts';
import type { Git } from './git.ts';

export interface RefMove {
  name: string;
  /** Where it has to be before, null being nowhere; left out, it may be anywhere. */
  from?: string | null;
  /** Null removes it. */
  to: string | null;
}

const nowhere = '0'.repeat(40);

/**
 * How git is run to move refs. Those that go are first, in a transaction of their own: a branch `a` stands in the way of
 * `a/b`, even where it goes in the same one.
 */
export function movingRefs(moves: readonly RefMove[]): [args: string[], call: { input: string }] {
  const gone = moves.flatMap(({ name, from, to }) => {
    if (to !== null) return [];
    return from == null ? `delete ${name}` : `delete ${name} ${from}`;
  });
  const moved = moves.flatMap(({ name, from, to }) => {
    if (to === null) return [];
    return from === undefined ? `update ${name} ${to}` : `update ${name} ${to} ${from ?? nowhere}`;
  });
  const lines = [gone, moved].flatMap((step) => (step.length === 0 ? [] : ['start', ...step, 'prepare', 'commit']));
  return [['update-ref', '--no-deref', '--stdin'], { input: lines.map((line) => `${line}\n`).join('') }];
}

/**
 * Puts back the tags of before that a fetch has moved or removed: like branches they are the user's, who may have made
 * them in a tree. New ones stay, unless they cannot be beside those.
 */
export async function keepTags(git: Git, { refs: before }: RefManifest): Promise<void> {
  const kept = Object.keys(before).filter((name) => name.startsWith('refs/tags/'));
  if (kept.length === 0) return;
  const { output } = await git.do(['for-each-ref', '--format=%(objectname) %(refname)', 'refs/tags']);
  const now = new Map(linesOf(output).map((line) => [line.toString('utf8', 41), line.toString('latin1', 0, 40)]));
  const lost = kept.filter((name) => now.get(name) !== before[name]);
  if (lost.length === 0) return;
  const inTheWay = [...now.keys()].filter(cannotBeBeside(lost));
  await git.do(
    ...movingRefs([
      ...inTheWay.map((name) => ({ name, to: null })),
      ...lost.map((name) => ({ name, to: before[name] ?? null })),
    ]),
  );
}
