import type { GitConfig } from '../../../config/git.ts';
import type { MirrorFolder } from '../mirror/folder.ts';
import { measureTree, noTree } from '../mirror/measure.ts';
import { currentBranch, initRepository, namesIn, writeHead } from '../mirror/repository.ts';
import type { Git } from '../process/git.ts';
import { listRemote, type Remote } from '../remote/remote.ts';
import { gitError } from '../rules/failures.ts';
import type { CloneResult, CloneSource, MirrorState } from '../types.ts';
import { bring } from './bring.ts';
import { fetchMissing } from './missing.ts';

/** Clones into the folder's partial repository, saves that, and makes it the mirror. */
export async function cloneInto(
  folder: MirrorFolder,
  remote: Remote,
  source: CloneSource,
  config: GitConfig,
): Promise<CloneResult> {
  const git = folder.partial;
  const filter = source.filter ?? null;
  remote.tell('connecting');
  const isNew = await makeToAsk(git);
  const { branches, defaultBranch, unusable } = await listRemote(git, remote, config);
  const branch = source.branch ?? defaultBranch;
  if (source.branch !== undefined && !branches.has(source.branch)) {
    throw gitError('GIT_REF_UNKNOWN', 'The remote has no such branch.');
  }
  let tree = noTree();
  if (branch === null) await initRepository(git, filter);
  else {
    await bring(git, remote, source, { branch, tip: branches.get(branch) ?? '', unusable, isNew });
    const commit = `refs/remotes/origin/${branch}`;
    if (filter !== null) await bringFiles(git, remote, commit);
    remote.tell('checking');
    tree = await measureTree(git, commit, config);
    await git.do(['update-ref', '--no-deref', '--end-of-options', `refs/heads/${branch}`, commit]);
    await writeHead(git, `refs/heads/${branch}`);
  }
  remote.tell('saving');
  return { ...(await folder.adopt(filter)), defaultBranch: branch, tree };
}

/** Git needs a repository to list a remote. One from an earlier attempt is kept. Returns whether it is new. */
async function makeToAsk(git: Git): Promise<boolean> {
  const isThere = (await namesIn(git.dir)).length > 0;
  if (isThere && (await git.run(['rev-parse', '--is-bare-repository'])).code === 0) return false;
  await initRepository(git, null);
  return true;
}

/** Fetches the files of a commit of a partial clone. */
export async function bringFiles(git: Git, remote: Remote, commit: string): Promise<void> {
  await fetchMissing(git, remote, { filter: null, roots: [`${commit}^{tree}`] });
}

/** The result of a clone that is already saved. */
export async function resultOf(git: Git, state: MirrorState, config: GitConfig): Promise<CloneResult> {
  const branch = currentBranch(state.manifest);
  const commit = branch === null ? undefined : state.manifest.refs[`refs/heads/${branch}`];
  const tree = commit === undefined ? noTree() : await measureTree(git, commit, config);
  return { ...state, defaultBranch: branch, tree };
}
