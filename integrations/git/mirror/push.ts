import { DomainError } from '../../../models/errors.ts';
import { cleanWords, withoutSecrets } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { isAcceptableRef } from '../rules/refName.ts';
import type { PushRef, RefManifest } from '../types.ts';
import type { Git } from './git.ts';
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
  for (const { from, to } of refs) await track(git, manifest, from, to);
  return cleanWords(
    withoutSecrets(words, [])
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

async function track(git: Git, manifest: RefManifest, from: string | null, to: string): Promise<void> {
  if (!to.startsWith('refs/heads/')) return;
  const name = trackedPrefix + to.slice('refs/heads/'.length);
  if (from !== null) await git.do(['update-ref', '--no-deref', '--end-of-options', name, manifest.refs[from] ?? '']);
  else if (manifest.refs[name] !== undefined)
    await git.do(['update-ref', '--no-deref', '-d', '--end-of-options', name]);
}
