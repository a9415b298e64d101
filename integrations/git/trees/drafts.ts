import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { uncommittedRef } from '../rules/keptRefs.ts';
import type { TreeWork, Uncommitted } from '../types.ts';
import { moveTo } from './halfMoves.ts';
import { enterToChange, enterToLook } from './scripts.ts';
import { exitCodes, failureOf, type TreeShell } from './treeShell.ts';

/** Filters of the repository’s own may run. */
const timeoutMs = 30 * 60_000;

// On a copy of the index, so that nobody's is changed, nor that of an attempt whose worker was killed and that goes on
// here. The copy is as old as the index: by that git knows which files may have changed since without looking changed.
// What is the same as before is the same commit again.
const keepScript = `${enterToLook}
set -e
left=
find "$GIT_DIR" -maxdepth 1 -name 'atrium-wip.*' -mmin +60 -exec rm -rf -- {} +
box=$(mktemp -d "$GIT_DIR/atrium-wip.XXXXXX")
trap 'rm -rf -- "$box"' EXIT
export GIT_INDEX_FILE="$box/index"
if [ -e "$GIT_DIR/index" ]; then cp -p -- "$GIT_DIR/index" "$GIT_INDEX_FILE"; fi
# One file that cannot be read, or a folder that is a repository without a commit, does not keep the others from it.
added=0
git add --all --ignore-errors -- . || added=$?
case "$added" in
  0) ;;
  1) left=yes ;;
  *) exit "$added" ;;
esac
tree=$(git write-tree)
parent=$(git rev-parse --verify --quiet HEAD) || parent=
if [ -n "$parent" ]; then base=$(git rev-parse "$parent^{tree}"); else base=$(git hash-object -t tree /dev/null); fi
say() { printf '%s\\n' "$1" "$left"; }
if [ "$tree" = "$base" ]; then
  if git rev-parse --verify --quiet ${uncommittedRef} >/dev/null; then git update-ref --no-deref -d ${uncommittedRef}; fi
  say ''
  exit 0
fi
old=$(git rev-parse --verify --quiet ${uncommittedRef}) || old=
if [ -n "$old" ] && [ "$(git log -1 --format='%T %P' "$old")" = "$tree $parent" ]; then
  say "$old"
  exit 0
fi
commit=$(git commit-tree "$tree" \${parent:+-p "$parent"} -m 'What is not committed')
git update-ref --no-deref ${uncommittedRef} "$commit"
say "$commit"
`;

const advanceScript = `${enterToChange}${moveTo}
name="refs/heads/$1" to=$2
if [ "$(git symbolic-ref --quiet HEAD)" = "$name" ]; then move_to "$to" git merge --ff-only --no-verify "$to"; fi
old=$(git rev-parse --verify --quiet "$name") || old=0000000000000000000000000000000000000000
case "$old" in
  "$to") exit 0 ;;
  *[!0]*) git merge-base --is-ancestor "$old" "$to" || exit ${exitCodes.conflicted} ;;
esac
exec git update-ref "$name" "$to" "$old"
`;

const ourselves = {
  GIT_AUTHOR_NAME: 'Atrium',
  GIT_AUTHOR_EMAIL: 'atrium@localhost',
  GIT_COMMITTER_NAME: 'Atrium',
  GIT_COMMITTER_EMAIL: 'atrium@localhost',
};

/** What git said of the files that it could not add; undefined where they have only gone meanwhile. */
function leftFrom(said: string): string | undefined {
  const words = said.split('\n').filter((line) => line.startsWith('error: '));
  const isOther = (line: string) => !/: No such file or directory$|: unable to index file /.test(line);
  if (words.length > 0 && !words.some(isOther)) return undefined;
  return cleanWords(words.map((line) => line.slice('error: '.length)).join('; '), 300);
}

/** What drafts need of working trees, their own and their repository’s. */
export function createDraftWork(shell: TreeShell) {
  return {
    async keepUncommitted(tree: TreeWork, signal: AbortSignal): Promise<Uncommitted> {
      const args = [tree.path, tree.itemId];
      const answer = await shell.do(tree, { script: keepScript, args, env: ourselves, timeoutMs, signal });
      const [id = '', left = ''] = answer.stdout.toString().split('\n');
      if (id !== '' && !/^[0-9a-f]{40}$/.test(id)) throw failureOf(answer);
      return { commit: id === '' ? undefined : id, left: left === '' ? undefined : leftFrom(answer.said) };
    },

    async advance(
      tree: TreeWork,
      { branch, commit }: { branch: string; commit: string },
      signal: AbortSignal,
    ): Promise<void> {
      const args = [tree.path, tree.itemId, branch, commit];
      const id = `${tree.workId}-change`;
      const answer = await shell.run(tree, { script: advanceScript, args, id, timeoutMs, signal });
      const hasMoved = /not possible to fast-forward/i.test(`${answer.stdout.toString()}\n${answer.said}`);
      if (answer.code === exitCodes.conflicted || (answer.code !== 0 && hasMoved)) {
        throw gitError('GIT_CONFLICT', 'The branch has moved in the meantime. Nothing was merged.');
      }
      if (answer.code !== 0) throw failureOf(answer);
    },
  };
}
