import { cleanWords } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { isObjectId } from '../rules/names.ts';
import { variablesOf } from '../rules/person.ts';
import type { GitTrees } from '../treeTypes.ts';
import { exitCodes, failureOf } from './failures.ts';
import { enterToChange, enterToLook, moveTo } from './scripts.ts';
import { boxOf, changeTimeoutMs, type TreeShell } from './treeShell.ts';

/** Limits for uncommitted work, for one file and for all. Each save stores a changed file as a whole. */
const [maxFileMiB, maxFilesMiB] = [32, 256];
const bytes = (miB: number) => miB * 1_048_576;

// Works on a copy of the index, so that the tree's index and other attempts stay unchanged. The copy keeps the index's
// time, by which git knows which files to read again. Objects go to a box below `$1`, named after their commit; the
// same files make the same commit. `$2` is the last saved commit: its box stays to tell which objects are new, and
// older boxes are removed. Nothing is written into the repository itself.
const keepScript = `${enterToLook}
set -e
cd - >/dev/null
boxes="$PWD/$1" saved=$2
cd - >/dev/null
mkdir -p -- "$boxes"
find "$boxes" -mindepth 1 -maxdepth 1 ! -name "\${saved:-none}" -exec rm -rf -- {} + || true
find "$GIT_DIR" -maxdepth 1 -name 'atrium-wip.*' -mmin +60 -exec rm -rf -- {} +
box=$(mktemp -d "$boxes/new.XXXXXX")
trap 'rm -rf -- "$box"' EXIT
mkdir -p -- "$box/objects/info"
printf '%s\\n' "$GIT_DIR/objects" > "$box/objects/info/alternates"
export GIT_INDEX_FILE="$box/index" GIT_OBJECT_DIRECTORY="$box/objects"
if [ -e "$GIT_DIR/index" ]; then cp -p -- "$GIT_DIR/index" "$GIT_INDEX_FILE"; fi
git ls-files -z --modified --others --exclude-standard | sed -z 's|^|./|' > "$box/files"
measure() { xargs -0 -r sh -c "$1 2>/dev/null; :" sh < "$box/files"; }
total=0
measure 'find "$@" -maxdepth 0 -type f -size -${bytes(maxFileMiB) + 1}c -printf "%s\\n"' > "$box/sizes"
while read -r size; do total=$((total + size)); done < "$box/sizes"
[ "$total" -le ${bytes(maxFilesMiB)} ] || exit ${exitCodes.tooMuch}
measure 'find "$@" -maxdepth 0 -type f -size +${bytes(maxFileMiB)}c -print0' \\
  | tr '\\n\\0' '?\\n' | sed 's|^[.]/||' > "$box/large"
large=$(head -n 4 -- "$box/large")
{
  printf '.\\0'
  sed 's/^/:(exclude,literal)/' "$box/large" | tr '\\n' '\\0'
} > "$box/paths"
# An unreadable file, or a nested repository without a commit, does not stop the other files.
added=0 left=
git -c core.looseCompression=1 add --all --ignore-errors \\
  --pathspec-from-file="$box/paths" --pathspec-file-nul || added=$?
case "$added" in
  0) ;;
  1) left=yes ;;
  *) exit "$added" ;;
esac
tree=$(git write-tree)
parent=$(git rev-parse --verify --quiet HEAD) || parent=
if [ -n "$parent" ]; then
  base=$(git rev-parse "$parent^{tree}")
  date=$(git log -1 --format=%ct "$parent")
else
  base=$(git hash-object -t tree /dev/null)
  date=0
fi
commit=
if [ "$tree" != "$base" ]; then
  export GIT_AUTHOR_DATE="@$date +0000" GIT_COMMITTER_DATE="@$date +0000"
  commit=$(git commit-tree "$tree" \${parent:+-p "$parent"} -m 'What is not committed')
  if [ ! -d "$boxes/$commit" ]; then
    find "$box" -maxdepth 1 -type f -exec rm -f -- {} +
    mv -T -- "$box" "$boxes/$commit"
  fi
fi
printf '%s\\n' "$commit" "$left" "$large"
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

const ourselves = variablesOf({ name: 'Atrium', email: 'atrium@localhost' });

function tooLarge(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const shown = names.slice(0, 3).map((name) => cleanWords(name, 80));
  return `more than ${maxFileMiB} MiB are in ${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}

/** Git's errors about files that it could not add. Undefined if these files were only deleted in the meantime. */
function unreadOf(said: string): string | undefined {
  const words = said.split('\n').filter((line) => line.startsWith('error: '));
  const isOther = (line: string) => !/: No such file or directory$|: unable to index file /.test(line);
  if (words.length > 0 && !words.some(isOther)) return undefined;
  return cleanWords(words.map((line) => line.slice('error: '.length)).join('; '), 300);
}

/** Operations on working trees that only drafts need. */
export function createDraftWork(shell: TreeShell): Pick<GitTrees, 'keepUncommitted' | 'advance'> {
  return {
    async keepUncommitted(tree, saved, signal) {
      const args = [boxOf(tree, 'wip'), saved ?? ''];
      const call = { script: keepScript, args, env: ourselves, timeoutMs: changeTimeoutMs, signal };
      const answer = await shell.run(tree, call);
      if (answer.code === exitCodes.tooMuch) {
        const detail = `What is in no commit is more than ${maxFilesMiB} MiB. Commit some of it, or have git ignore it.`;
        throw gitError('GIT_DRAFT_INCOMPLETE', detail);
      }
      if (answer.code !== 0) throw failureOf(answer);
      const [id = '', unread = '', ...large] = answer.stdout.toString().trimEnd().split('\n');
      if (id !== '' && !isObjectId(id)) throw failureOf(answer);
      const left = [tooLarge(large), unread === '' ? undefined : unreadOf(answer.said)];
      const words = left.filter((part) => part !== undefined).join('; ');
      return { commit: id || undefined, left: words || undefined };
    },

    async advance(tree, { branch, commit }, signal) {
      const call = { script: advanceScript, args: [branch, commit], timeoutMs: changeTimeoutMs, signal };
      const answer = await shell.run(tree, { ...call, id: `${tree.workId}-change` });
      const hasMoved = /not possible to fast-forward/i.test(`${answer.stdout.toString()}\n${answer.said}`);
      if (answer.code === exitCodes.conflicted || (answer.code !== 0 && hasMoved)) {
        throw gitError('GIT_CONFLICT', 'The branch has moved in the meantime. Nothing was merged.');
      }
      if (answer.code !== 0) throw failureOf(answer);
    },
  };
}
