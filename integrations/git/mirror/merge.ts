import type { Git } from '../process/git.ts';
import { describeFailure, nameSome } from '../rules/describeFailure.ts';
import { gitError, objectsMissing } from '../rules/failures.ts';
import { datedSignatureOf } from '../rules/person.ts';
import type { MergeRequest, MergeResult, RefManifest } from '../types.ts';
import { moveRefs } from './refs.ts';
import { removeLooseObjects } from './repository.ts';

/** Merges in a mirror: no settings of a working tree apply, and no file is written. */
export async function mergeBranches(git: Git, manifest: RefManifest, merge: MergeRequest): Promise<MergeResult> {
  const { refs } = manifest;
  const ours = refs[`refs/heads/${merge.into}`] ?? refs[`refs/remotes/origin/${merge.into}`];
  const theirs = refs[merge.from];
  if (ours === undefined) throw gitError('GIT_REF_UNKNOWN', `There is no branch ${merge.into} to merge into.`);
  if (theirs === undefined) throw gitError('GIT_REF_UNKNOWN', 'There is no branch to merge.');
  const result = await join(git, ours, theirs, merge);
  await moveRefs(git, manifest, [{ name: merge.to, from: refs[merge.to] ?? null, to: result.commit }]);
  if (!result.fastForward) {
    // A mirror keeps only packs: loose objects mean that something came unchecked.
    await git.do(['repack', '-d', '-q']);
    await removeLooseObjects(git);
  }
  return result;
}

async function join(git: Git, ours: string, theirs: string, merge: MergeRequest): Promise<MergeResult> {
  if (await isIn(git, theirs, ours)) return { commit: ours, fastForward: true };
  if (await isIn(git, ours, theirs)) return { commit: theirs, fastForward: true };
  const options = ['--write-tree', '--name-only', '--no-messages', '-z'];
  const outcome = await git.run(['merge-tree', ...options, ours, theirs]);
  const [tree = '', ...files] = String(outcome.output).split('\0');
  if (outcome.code === 1) throw conflict(files, merge);
  if (outcome.code !== 0) {
    if (/unrelated histories/.test(outcome.said)) {
      throw gitError('GIT_CONFLICT', 'The two branches have no commit in common.');
    }
    if (/promisor|unable to read|could not fetch/i.test(outcome.said)) throw objectsMissing();
    throw describeFailure(outcome);
  }
  const commit = await git.text(['commit-tree', tree.trim(), '-p', ours, '-p', theirs], {
    input: `${merge.message}\n`,
    environment: datedSignatureOf(merge.author, merge.at),
  });
  return { commit: commit.trim(), fastForward: false };
}

/** Whether a commit is the other one, or an ancestor of it. */
async function isIn(git: Git, ancestor: string, commit: string): Promise<boolean> {
  const outcome = await git.run(['merge-base', '--is-ancestor', ancestor, commit]);
  if (outcome.code === 0 || outcome.code === 1) return outcome.code === 0;
  throw describeFailure(outcome);
}

function conflict(names: readonly string[], { into }: MergeRequest) {
  const named = nameSome([...new Set(names)], 200);
  const remedy = `In the draft, merge origin/${into.slice(0, 100)}, resolve and commit that, and try again.`;
  return gitError('GIT_CONFLICT', `Both sides have changed ${named}. Nothing was merged. ${remedy}`);
}
