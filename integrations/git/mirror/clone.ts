import type { GitConfig } from '../../../config/git.ts';
import { gitError } from '../rules/failures.ts';
import type { CloneResult, CloneSource, MirrorState, TreeFacts } from '../types.ts';
import { bring } from './bring.ts';
import type { MirrorFolder } from './folder.ts';
import type { Git } from './git.ts';
import { measureTree } from './measure.ts';
import { fetchMissing } from './missing.ts';
import { listRemote, type Remote } from './remote.ts';
import { currentBranch, initRepository, namesIn, writeHead } from './repository.ts';

const emptyTree: TreeFacts = { files: 0, bytes: 0, lfsPointers: 0, submodules: [] };

/** Clones into the folder's partial repository, saves that, and makes it the mirror. */
export async function cloneInto(
  folder: MirrorFolder,
  remote: Remote,
  source: CloneSource,
  config: GitConfig,
): Promise<CloneResult> {
  const git = folder.partial;
  remote.tell('connecting');
  const isNew = await makeToAsk(git);
  const { branches, defaultBranch, unusable } = await listRemote(git, remote, config);
  const branch = source.branch ?? defaultBranch;
  if (source.branch !== undefined && !branches.has(source.branch)) {
    throw gitError('GIT_REF_UNKNOWN', 'The remote has no such branch.');
  }
  let tree = emptyTree;
  if (branch === null) await initRepository(git, source.filter ?? null);
  else {
    await bring(git, remote, source, { branch, tip: branches.get(branch) ?? '', unusable, isNew });
    const commit = `refs/remotes/origin/${branch}`;
    if (source.filter !== undefined) await bringFiles(git, remote, [commit]);
    remote.tell('checking');
    tree = await measureTree(git, commit, config);
    await git.do(['update-ref', '--no-deref', '--end-of-options', `refs/heads/${branch}`, commit]);
    await writeHead(git, `refs/heads/${branch}`);
  }
  remote.tell('saving');
  const state = await folder.saveFirst(git, source.filter ?? null);
  await folder.adopt(state);
  return { ...state, defaultBranch: branch, tree };
}

/**
 * A repository is needed to ask with; one that an earlier attempt has left stays as it is. Answers whether it is a new
 * one.
 */
async function makeToAsk(git: Git): Promise<boolean> {
  const isThere = (await namesIn(git.dir)).length > 0;
  if (isThere && (await git.run(['rev-parse', '--is-bare-repository'])).code === 0) return false;
  await initRepository(git, null);
  return true;
}

/** The files of commits of a partial clone. */
export async function bringFiles(git: Git, remote: Remote, commits: readonly string[]): Promise<void> {
  await fetchMissing(git, remote, { filter: null, roots: commits.map((commit) => `${commit}^{tree}`) });
}

/** What a clone that has been saved has told. */
export async function resultOf(git: Git, state: MirrorState, config: GitConfig): Promise<CloneResult> {
  const branch = currentBranch(state.manifest);
  const commit = branch === null ? undefined : state.manifest.refs[`refs/heads/${branch}`];
  const tree = commit === undefined ? emptyTree : await measureTree(git, commit, config);
  return { ...state, defaultBranch: branch, tree };
}
