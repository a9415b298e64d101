import { checkBranchName } from '../rules/branchName.ts';
import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { datedSignatureOf } from '../rules/person.ts';
import type { TreeWork } from '../treeTypes.ts';
import type { GitPerson } from '../types.ts';
import { moveTo } from './halfMoves.ts';
import { enterToChange, leaveUnfinished } from './scripts.ts';
import { exitCodes, failureOf, type TreeAnswer, type TreeCall, type TreeShell } from './treeShell.ts';

/** Filters of the repository’s own may run. */
const timeoutMs = 30 * 60_000;
const maxOutput = 20_000;

// A later attempt finds what an earlier one has done that was ended with its computer.
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

// The first line is the commit’s id, and what git says comes after it.
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
# In the middle of a merge git refuses paths, also those of everything.
[ "$ATRIUM_ONLY" = yes ] && set -- --only -- "$@" || set --
said=$(git commit --no-verify --cleanup=whitespace --file=- "$@" 2>&1) || {
  code=$?
  printf '%s\\n' "$said"
  exit $code
}
git rev-parse HEAD
printf '%s\\n' "$said"
`;

// There was no merge before, and one that only moves forward begins none: what is aborted is this one.
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

export function createChanges(shell: TreeShell) {
  async function change(
    tree: TreeWork,
    call: Pick<TreeCall, 'script' | 'args' | 'env' | 'stdin' | 'signal'>,
    other?: string,
  ): Promise<TreeAnswer> {
    const args = [tree.path, tree.itemId, ...(call.args ?? [])];
    const answer = await shell.run(tree, { ...call, args, id: `${tree.workId}-change`, timeoutMs });
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

  async function known(...given: Parameters<typeof change>): Promise<{ output: string }> {
    const answer = await change(...given);
    if (answer.code === exitCodes.nothing) throw gitError('GIT_REF_UNKNOWN', 'There is no such branch or commit.');
    return { output: cleanWords(answer.stdout.toString(), maxOutput) };
  }

  return {
    async branch(
      tree: TreeWork,
      { name, from = '', checkout }: { name: string; from?: string | undefined; checkout: boolean },
      signal: AbortSignal,
    ): Promise<{ output: string }> {
      checkBranchName(name);
      return known(tree, { script: branchScript, args: [name, from, checkout ? 'yes' : 'no'], signal });
    },

    // Git 2.39 takes no `--end-of-options` here, so the name is one that cannot be an option.
    async checkout(tree: TreeWork, { branch }: { branch: string }, signal: AbortSignal): Promise<{ output: string }> {
      checkBranchName(branch);
      return known(tree, { script: checkoutScript, args: [branch], signal });
    },

    async commit(
      tree: TreeWork,
      commit: { message: string; author: GitPerson | undefined; at: Date; paths?: readonly string[] | undefined },
      signal: AbortSignal,
    ): Promise<{ id: string; output: string }> {
      const { message, author, at, paths } = commit;
      const answer = await change(tree, {
        script: commitScript,
        // The tree’s own root, without paths.
        args: paths ?? ['.'],
        env: { ...signature(tree, author, at), ATRIUM_ONLY: paths === undefined ? 'no' : 'yes' },
        stdin: message,
        signal,
      });
      if (answer.code === exitCodes.nothing) {
        throw gitError('GIT_NOTHING_TO_COMMIT', 'There is no change to commit.');
      }
      const [id = '', ...words] = answer.stdout.toString().split('\n');
      if (!/^[0-9a-f]{40}$/.test(id)) throw failureOf(answer);
      return { id, output: cleanWords(words.join('\n'), maxOutput) };
    },

    merge: (
      tree: TreeWork,
      merge: { ref: string; author: GitPerson | undefined; at: Date; fastForwardOnly: boolean },
      signal: AbortSignal,
    ): Promise<{ output: string }> =>
      known(
        tree,
        {
          script: mergeScript,
          args: [merge.ref, merge.fastForwardOnly ? '--ff-only' : '--ff'],
          env: signature(tree, merge.author, merge.at),
          signal,
        },
        merge.ref.replace(/^refs\/remotes\//, ''),
      ),
  };
}

/** The reflog says which order it was. */
function signature({ workId }: TreeWork, author: GitPerson | undefined, at: Date): Record<string, string> {
  return { ...datedSignatureOf(author, at), GIT_REFLOG_ACTION: `atrium ${workId}` };
}
