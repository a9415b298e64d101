import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { checkBranchName, isObjectId } from '../rules/names.ts';
import { datedSignatureOf } from '../rules/person.ts';
import type { GitTrees, TreeWork } from '../treeTypes.ts';
import type { GitPerson } from '../types.ts';
import { exitCodes, failureOf } from './failures.ts';
import { enterToChange, leaveUnfinished, moveTo } from './scripts.ts';
import { changeTimeoutMs, type TreeAnswer, type TreeCall, type TreeShell } from './treeShell.ts';

const maxOutput = 20_000;

// The computer may have ended an earlier attempt after its work was done.
const branchScript = `${enterToChange}${moveTo}
name=$1 from=$2 checkout=$3
if [ "$checkout" = yes ]; then ${leaveUnfinished}fi
if [ "$ATRIUM_ATTEMPT" -gt 1 ] && git show-ref --verify --quiet "refs/heads/$name"; then
  [ "$checkout" = yes ] || exit 0
  move_to "$(git rev-parse --verify --quiet "refs/heads/$name^{commit}")" git checkout "$name" --
fi
if [ -n "$from" ]; then from=$(git rev-parse --verify --quiet --end-of-options "$from^{commit}") || exit ${exitCodes.nothing}; fi
if [ "$checkout" = yes ]; then move_to "$from" git checkout --no-track -b "$name" $from --; fi
exec git branch --no-track -- "$name" $from 2>&1
`;

const checkoutScript = `${enterToChange}${moveTo}${leaveUnfinished}
id=$(git rev-parse --verify --quiet "refs/heads/$1^{commit}") \\
  || id=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") \\
  || id=$(git rev-parse --verify --quiet "refs/remotes/origin/$1^{commit}") \\
  || id=
move_to "$id" git checkout "$1" --
`;

// The first line of the output is the commit’s id, and git’s words follow.
const commitScript = `${enterToChange}
case "$(git log -g -1 --format=%gs HEAD 2>/dev/null)" in
  "$GIT_REFLOG_ACTION"*) exec git rev-parse HEAD ;;
esac
[ -z "$(git ls-files --unmerged | head -c 1)" ] || exit ${exitCodes.conflicted}
export GIT_LITERAL_PATHSPECS=1
git add --all -- "$@" || exit $?
if git rev-parse --verify --quiet HEAD >/dev/null; then
  if [ ! -e .git/MERGE_HEAD ] && git diff --cached --quiet HEAD -- "$@"; then exit ${exitCodes.nothing}; fi
elif [ -z "$(git ls-files --cached -- "$@" | head -c 1)" ]; then exit ${exitCodes.nothing}
fi
# During a merge, git refuses paths, even the one for everything.
[ "$ATRIUM_ONLY" = yes ] && set -- --only -- "$@" || set --
said=$(git commit --no-verify --cleanup=whitespace --file=- "$@" 2>&1) || {
  code=$?
  printf '%s\\n' "$said"
  exit $code
}
git rev-parse HEAD
printf '%s\\n' "$said"
`;

// `leaveUnfinished` finds any earlier merge, and a fast-forward begins none: the abort can only hit this merge.
const mergeScript = `${enterToChange}${moveTo}
case "$(git log -g -1 --format=%gs HEAD 2>/dev/null)" in
  "$GIT_REFLOG_ACTION"*) echo 'Already up to date.'; exit 0 ;;
esac
${leaveUnfinished}
id=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") || exit ${exitCodes.nothing}
if ! git rev-parse --verify --quiet HEAD >/dev/null || git merge-base --is-ancestor HEAD "$id"; then
  move_to "$id" git merge --no-edit --no-verify $2 -- "$1"
fi
git merge --no-edit --no-verify $2 -- "$1" 2>&1 && exit 0
code=$?
[ "$2" != --ff-only ] && [ "$(cat .git/MERGE_HEAD 2>/dev/null)" = "$id" ] && git merge --abort
exit $code
`;

/** Changes of a working tree. Each is made once, even if its computer stops in the middle. */
export function createChanges(shell: TreeShell): Pick<GitTrees, 'branch' | 'checkout' | 'commit' | 'merge'> {
  async function change(tree: TreeWork, call: TreeCall, other?: string): Promise<TreeAnswer> {
    const answer = await shell.run(tree, { ...call, id: `${tree.workId}-change`, timeoutMs: changeTimeoutMs });
    if (answer.code === exitCodes.conflicted) {
      throw gitError('GIT_CONFLICT', 'Files are in conflict. Resolve that and `git add` them first.');
    }
    if (answer.code === exitCodes.unfinished) {
      const detail = 'A merge, rebase, cherry-pick or revert is not finished in the tree. Finish or abort it first.';
      throw gitError('GIT_CONFLICT', detail);
    }
    if (answer.code !== 0 && answer.code !== exitCodes.nothing) throw failureOf(answer, other);
    return answer;
  }

  /** A change that needs an existing branch or commit. */
  async function changeTo(...given: Parameters<typeof change>): Promise<{ output: string }> {
    const answer = await change(...given);
    if (answer.code === exitCodes.nothing) throw gitError('GIT_REF_UNKNOWN', 'There is no such branch or commit.');
    return { output: cleanWords(answer.stdout.toString(), maxOutput) };
  }

  return {
    async branch(tree, { name, from = '', checkout }, signal) {
      checkBranchName(name);
      return changeTo(tree, { script: branchScript, args: [name, from, checkout ? 'yes' : 'no'], signal });
    },

    // Git 2.39 has no `--end-of-options` here, so the name must not look like an option.
    async checkout(tree, { branch }, signal) {
      checkBranchName(branch);
      return changeTo(tree, { script: checkoutScript, args: [branch], signal });
    },

    async commit(tree, { message, author, at, paths }, signal) {
      const answer = await change(tree, {
        script: commitScript,
        // Without paths, everything below the tree’s root is committed.
        args: paths ?? ['.'],
        env: { ...signature(tree, author, at), ATRIUM_ONLY: paths === undefined ? 'no' : 'yes' },
        stdin: message,
        signal,
      });
      if (answer.code === exitCodes.nothing) {
        throw gitError('GIT_NOTHING_TO_COMMIT', 'There is no change to commit.');
      }
      const [id = '', ...words] = answer.stdout.toString().split('\n');
      if (!isObjectId(id)) throw failureOf(answer);
      return { id, output: cleanWords(words.join('\n'), maxOutput) };
    },

    async merge(tree, { ref, author, at, fastForwardOnly }, signal) {
      const args = [ref, fastForwardOnly ? '--ff-only' : '--ff'];
      const call = { script: mergeScript, args, env: signature(tree, author, at), signal };
      return changeTo(tree, call, ref.replace(/^refs\/remotes\//, ''));
    },
  };
}

/** The reflog action tells a later attempt that this order’s commit is made. */
function signature({ workId }: TreeWork, author: GitPerson | undefined, at: Date): Record<string, string> {
  return { ...datedSignatureOf(author, at), GIT_REFLOG_ACTION: `atrium ${workId}` };
}
