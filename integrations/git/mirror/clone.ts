import type { GitConfig } from '../../../config/git.ts';
import { gitError } from '../rules/failures.ts';
import type { CloneResult, CloneSource, MirrorState, TreeFacts } from '../types.ts';
import { bring } from './bring.ts';
import type { MirrorFolder } from './folder.ts';
import type { Git } from './git.ts';
import { measureTree } from './measure.ts';
import { fetchMissing } from './missing.ts';
import { listRemote, type Remote } from './remote.ts';
import { currentBranch, initRepository } from './repository.ts';

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
  const { branches, defaultBranch, unusable } = await listRemote(await repositoryToAsk(git), remote, config);
  const branch = source.branch ?? defaultBranch;
  if (source.branch !== undefined && !branches.has(source.branch)) {
    throw gitError('GIT_REF_UNKNOWN', 'The remote has no such branch.');
  }
  let tree = emptyTree;
  if (branch === null) await initRepository(git, source.filter ?? null);
  else {
    await bring(git, remote, source, { branch, tip: branches.get(branch) ?? '', unusable });
    const commit = (
      await git.text(['rev-parse', '--verify', '--end-of-options', `refs/remotes/origin/${branch}^{commit}`])
    ).trim();
    if (source.filter !== undefined) await bringFiles(git, remote, [commit]);
    remote.tell('checking');
    tree = await measureTree(git, commit, config);
    await git.do(['update-ref', '--no-deref', '--end-of-options', `refs/heads/${branch}`, commit]);
    await git.do(['symbolic-ref', '--end-of-options', 'HEAD', `refs/heads/${branch}`]);
  }
  remote.tell('saving');
  const state = await folder.saveFirst(git);
  await folder.adopt(state);
  return { ...state, defaultBranch: branch, tree };
}

/** A repository is needed to ask with; one that an earlier attempt has left stays as it is. */
async function repositoryToAsk(git: Git): Promise<Git> {
  const found = await git.run(['rev-parse', '--is-bare-repository']);
  if (found.code !== 0) await initRepository(git, null);
  return git;
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
