import { DomainError } from '../../../base/errors.ts';
import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { cannotBeBeside, isAcceptableRef } from '../rules/refName.ts';
import type { PushRef, RefManifest } from '../types.ts';
import type { Git } from './git.ts';
import { movingRefs } from './refMoves.ts';
import type { Remote } from './remote.ts';

const maxOutput = 10_000;
const trackedPrefix = 'refs/remotes/origin/';

/** Pushes, and moves the refs that say where the remote is. Answers git's own words. */
export async function pushRefs(
  git: Git,
  remote: Remote,
  manifest: RefManifest,
  refs: readonly PushRef[],
): Promise<string> {
  const specs = refs.map(({ from, to, force }) => {
    if (!/^refs\/(?:heads|tags)\//.test(to) || !isAcceptableRef(to))
      throw gitError('GIT_BRANCH_NAME_REFUSED', 'This ref cannot be pushed.');
    if (from !== null && manifest.refs[from] === undefined)
      throw gitError('GIT_REF_UNKNOWN', 'There is no such branch.');
    return {
      spec: `${from ?? ''}:${to}`,
      lease: force ? `--force-with-lease=${to}:${trackedOf(manifest, to) ?? ''}` : [],
    };
  });
  const leases = specs.flatMap(({ lease }) => lease);
  let words: string;
  try {
    const outcome = await remote.do(git, [
      'push',
      '--porcelain',
      '--progress',
      '--atomic',
      '--no-verify',
      '--no-follow-tags',
      '--recurse-submodules=no',
      ...leases,
      '--end-of-options',
      'origin',
      ...specs.map(({ spec }) => spec),
    ]);
    words = `${outcome.said}\n${outcome.output}`;
  } catch (error) {
    // A push that was killed may have arrived: then its lease no longer holds.
    const isConflict = error instanceof DomainError && error.code === 'GIT_CONFLICT';
    if (!isConflict || !(await isAlreadyThere(git, remote, manifest, refs))) throw error;
    words = 'Everything up-to-date';
  }
  await track(git, manifest, refs);
  return cleanWords(
    remote
      .withoutSecrets(words)
      .replace(/^To .*$/gm, '')
      .replace(/^Done$/gm, ''),
    maxOutput,
  );
}

function trackedOf({ refs }: RefManifest, to: string): string | undefined {
  return to.startsWith('refs/heads/') ? refs[trackedPrefix + to.slice('refs/heads/'.length)] : refs[to];
}

async function isAlreadyThere(git: Git, remote: Remote, manifest: RefManifest, refs: readonly PushRef[]) {
  const { output } = await remote.do(git, [
    'ls-remote',
    '--quiet',
    '--end-of-options',
    'origin',
    ...refs.map(({ to }) => to),
  ]);
  const there = new Map(
    String(output)
      .split('\n')
      .map((line) => line.split('\t', 2).toReversed() as [string, string]),
  );
  return refs.every(({ from, to }) => there.get(to) === (from === null ? undefined : manifest.refs[from]));
}

/** Where the remote is now. A branch `a` that was there has gone before `a/b` could come, so it is forgotten here. */
async function track(git: Git, { refs: known }: RefManifest, pushed: readonly PushRef[]): Promise<void> {
  const moves = pushed
    .filter(({ to }) => to.startsWith('refs/heads/'))
    .map(({ from, to }) => ({
      name: trackedPrefix + to.slice('refs/heads/'.length),
      to: from === null ? null : (known[from] ?? null),
    }));
  const made = moves.filter(({ to }) => to !== null);
  const isInTheWay = cannotBeBeside(made.map(({ name }) => name));
  const isRemoved = (name: string) => moves.some((move) => move.name === name && move.to === null);
  const gone = Object.keys(known).filter(
    (name) => name.startsWith(trackedPrefix) && (isInTheWay(name) || isRemoved(name)),
  );
  if (made.length + gone.length === 0) return;
  await git.do(...movingRefs([...gone.map((name) => ({ name, to: null })), ...made]));
}
