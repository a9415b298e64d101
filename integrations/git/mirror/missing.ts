import { gitError } from '../rules/failures.ts';
import type { GitFilter } from '../types.ts';
import type { Git } from './git.ts';
import type { Remote } from './remote.ts';

export const fetchCommand = ['fetch', '--progress', '--no-write-fetch-head', '--no-recurse-submodules'];
/** Of ids that are asked for in one fetch. A fetch that is cut keeps what it has brought, so they may be many. */
const maxAsked = 50_000;
/** How often objects may turn out to be missing: once for each level of folders, and more where the remote is odd. */
const maxRounds = 500;

interface Reachable {
  filter: GitFilter | null;
  /** Objects by their ids, or all that refs name. */
  roots: readonly string[] | 'all';
}

/**
 * Asks for all objects that are missing, and then for what these refer to: first all folders, then all files at once,
 * for versions of a file take much less room together.
 */
export async function fetchMissing(git: Git, remote: Remote, { filter, roots }: Reachable): Promise<void> {
  await fetchKind(git, remote, { filter: 'blob:none', roots });
  if (filter !== 'blob:none') await fetchKind(git, remote, { filter, roots });
}

export async function fetchKind(git: Git, remote: Remote, reachable: Reachable): Promise<void> {
  let missing = await listMissing(git, reachable);
  for (let round = 0; missing.length > 0; round += 1) {
    await fetchObjects(git, remote, missing);
    const asked = new Set(missing);
    missing = await listMissing(git, reachable);
    // A remote that answers and brings nothing would be asked for ever.
    if (round >= maxRounds || (missing.length >= asked.size && missing.every((id) => asked.has(id)))) {
      throw gitError('GIT_REMOTE_FAILED', 'The remote does not send all objects of the repository.');
    }
  }
}

/** The objects that belong to roots and are not here; what they would refer to is not known yet. */
async function listMissing(git: Git, { filter, roots }: Reachable): Promise<string[]> {
  const filters = filter === null ? [] : [`--filter=${filter}`];
  const [which, input] = roots === 'all' ? ['--all'] : ['--stdin', roots.map((root) => `${root}\n`).join('')];
  const listed = await git.text(['rev-list', '--objects', '--quiet', '--missing=print', ...filters, which], { input });
  return listed
    .split('\n')
    .filter((line) => line.startsWith('?'))
    .map((line) => line.slice(1));
}

/**
 * Asks for exactly these objects, and without telling what is here: that would cost more than it saves. A server leaves
 * out an object that is also within a folder that is asked for; who asked sees what is still missing.
 */
export async function fetchObjects(git: Git, remote: Remote, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += maxAsked) {
    await remote.do(git, [...fetchCommand, '--no-tags', '--filter=tree:0', '--stdin', '--end-of-options', 'origin'], {
      accepts: /did not send all necessary objects/,
      settings: { 'fetch.negotiationAlgorithm': 'noop' },
      input: ids
        .slice(at, at + maxAsked)
        .map((id) => `${id}\n`)
        .join(''),
    });
  }
}
