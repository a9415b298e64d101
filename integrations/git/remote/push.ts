import { DomainError } from '../../../base/errors.ts';
import { movingRefs } from '../mirror/refs.ts';
import type { Git } from '../process/git.ts';
import { cleanWords, withoutSecrets } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { cannotBeBeside, isAcceptableRef } from '../rules/names.ts';
import type { PushRef, RefManifest } from '../types.ts';
import type { Remote } from './remote.ts';

const maxOutput = 10_000;
const trackedPrefix = 'refs/remotes/origin/';

/** Pushes, and moves the refs that track the remote. Returns git's own words. */
export async function pushRefs(
  git: Git,
  remote: Remote,
  manifest: RefManifest,
  refs: readonly PushRef[],
): Promise<string> {
  for (const { from, to } of refs) {
    if (!/^refs\/(?:heads|tags)\//.test(to) || !isAcceptableRef(to)) {
      throw gitError('GIT_BRANCH_NAME_REFUSED', 'This ref cannot be pushed.');
    }
    if (from !== null && manifest.refs[from] === undefined) {
      throw gitError('GIT_REF_UNKNOWN', 'There is no such branch.');
    }
  }
  const options = [
    '--porcelain',
    '--progress',
    '--atomic',
    '--no-verify',
    '--no-follow-tags',
    '--recurse-submodules=no',
  ];
  const leases = refs.flatMap(({ to, force }) =>
    force ? `--force-with-lease=${to}:${manifest.refs[trackedAs(to) ?? to] ?? ''}` : [],
  );
  const specs = refs.map(({ from, to }) => `${from ?? ''}:${to}`);
  let words: string;
  try {
    const outcome = await remote.do(git, ['push', ...options, ...leases, '--end-of-options', 'origin', ...specs]);
    words = `${outcome.said}\n${outcome.output}`;
  } catch (error) {
    // An earlier attempt may have been killed after its push arrived. Then its lease no longer holds.
    const isConflict = error instanceof DomainError && error.code === 'GIT_CONFLICT';
    if (!isConflict || !(await isAlreadyThere(git, remote, manifest, refs))) throw error;
    words = 'Everything up-to-date';
  }
  await track(git, manifest, refs);
  return cleanWords(withoutSecrets(words, remote.secrets).replace(/^To .*$|^Done$/gm, ''), maxOutput);
}

/** The ref that tracks a branch of the remote. */
function trackedAs(to: string): string | undefined {
  return to.startsWith('refs/heads/') ? trackedPrefix + to.slice('refs/heads/'.length) : undefined;
}

async function isAlreadyThere(git: Git, remote: Remote, manifest: RefManifest, refs: readonly PushRef[]) {
  const names = refs.map(({ to }) => to);
  const { output } = await remote.do(git, ['ls-remote', '--quiet', '--end-of-options', 'origin', ...names]);
  const lines = String(output).split('\n');
  const there = new Map(lines.map((line) => line.split('\t', 2).toReversed() as [string, string]));
  return refs.every(({ from, to }) => there.get(to) === (from === null ? undefined : manifest.refs[from]));
}

/** Moves the tracking refs. If the remote accepted `a/b`, it has no branch `a` any more, so `a` is removed here too. */
async function track(git: Git, { refs: known }: RefManifest, pushed: readonly PushRef[]): Promise<void> {
  const moves = pushed.flatMap(({ from, to }) => {
    const name = trackedAs(to);
    return name === undefined ? [] : { name, to: from === null ? null : (known[from] ?? null) };
  });
  const made = moves.filter(({ to }) => to !== null);
  const isInTheWay = cannotBeBeside(made.map(({ name }) => name));
  const isRemoved = (name: string) => moves.some((move) => move.name === name && move.to === null);
  const gone = Object.keys(known).filter(
    (name) => name.startsWith(trackedPrefix) && (isInTheWay(name) || isRemoved(name)),
  );
  if (made.length + gone.length === 0) return;
  await git.do(...movingRefs([...gone.map((name) => ({ name, to: null })), ...made]));
}
