import { gitError } from '../rules/failures.ts';
import { isStorableRef } from '../rules/names.ts';
import type { GitTrees, TreeRef } from '../treeTypes.ts';
import { exitCodes, failureOf } from './failures.ts';
import { parseLog, parseStatus } from './parse.ts';
import { enterToLook } from './scripts.ts';
import type { TreeCall, TreeShell } from './treeShell.ts';

const maxChanges = 2_000;
const maxStatusBytes = 1_048_576;
const maxLogBytes = 4 * 1_048_576;
const maxRefBytes = 8 * 1_048_576;
const maxDiffBytes = 1_048_576;
const maxListBytes = 32 * 1_048_576;

/** Defines `resolve`, which prints the commit that a caller's word names. The word is never an option or a range. */
const resolve = `
resolve() {
  git rev-parse --verify --quiet --end-of-options "$1^{commit}" || exit ${exitCodes.nothing}
}
`;

// An unfinished merge, rebase or the like is reported in a header of our own.
const statusScript = `${enterToLook}
begun=
if [ -d .git/rebase-merge ]; then begun=rebase
elif [ -e .git/rebase-apply/applying ]; then begun=patches
elif [ -d .git/rebase-apply ]; then begun=rebase
elif [ -e .git/MERGE_HEAD ]; then begun=merge
elif [ -e .git/CHERRY_PICK_HEAD ]; then begun=cherryPick
elif [ -e .git/REVERT_HEAD ]; then begun=revert
elif [ -e .git/sequencer/todo ]; then
  case "$(head -n 1 .git/sequencer/todo)" in
    revert*) begun=revert ;;
    *) begun=cherryPick ;;
  esac
fi
[ -z "$begun" ] || printf '# atrium.unfinished %s\\000' "$begun"
exec git status --porcelain=v2 --branch --untracked-files=all -z
`;

// A branch without a commit has an empty log.
const logScript = `${enterToLook}${resolve}
if [ -n "$1" ]; then start=$(resolve "$1") || exit $?
else start=$(git rev-parse --verify --quiet HEAD) || exit 0
fi
skip=$2 count=$3 path=$4
export GIT_LITERAL_PATHSPECS=1
set -- "$start"
[ -n "$path" ] && set -- "$start" -- "$path"
exec git log -z --skip="$skip" --max-count="$count" \\
  --format='%H%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%cI%x00%B' "$@"
`;

const branchesScript = `${enterToLook}
exec git for-each-ref --format='%(refname)%00%(objectname)%00%(upstream:short)%00%(HEAD)%00%(symref)' \\
  refs/heads refs/remotes/origin
`;

const diffScript = `${enterToLook}${resolve}
from= to=
if [ -n "$1" ]; then from=$(resolve "$1") || exit $?; fi
if [ -n "$2" ]; then to=$(resolve "$2") || exit $?; fi
staged=$3
shift 3
export GIT_LITERAL_PATHSPECS=1
exec git diff --no-color --no-ext-diff $staged $from $to -- "$@"
`;

// Nothing is fetched: missing objects are only listed.
const lackingScript = `${enterToLook}
git cat-file -e "$1^{tree}" 2>/dev/null || exit ${exitCodes.nothing}
git rev-list --objects --no-walk --missing=print "$1^{tree}" | sed -n 's/^?//p'
`;

/** Reads of a working tree. */
export function createLooks(shell: TreeShell): Pick<GitTrees, 'status' | 'log' | 'branches' | 'diff' | 'lacking'> {
  const look = async (tree: TreeRef, call: TreeCall) => {
    // A read that is part of a change, such as a pull, does not take a slot for reads.
    const answer = await shell.run(tree, { ...call, isLook: !('workId' in tree) });
    if (answer.code === exitCodes.nothing) throw gitError('GIT_REF_UNKNOWN', 'There is no such branch or commit.');
    if (answer.code !== 0) throw failureOf(answer);
    return answer;
  };

  return {
    async status(tree, signal) {
      const { stdout, isCut } = await look(tree, { script: statusScript, maxBytes: maxStatusBytes, signal });
      return parseStatus(stdout, { isCut, maxChanges });
    },

    async log(tree, page, signal) {
      // All pages of a log start from the first page's commit, even if the branch moves in the meantime.
      const [start = page.from ?? '', skip = '0'] = page.after?.split('.') ?? [];
      const args = [start, skip, String(page.limit + 1), page.path ?? ''];
      const { stdout } = await look(tree, { script: logScript, args, maxBytes: maxLogBytes, signal });
      const found = parseLog(stdout);
      const commits = found.slice(0, page.limit);
      const first = page.after === undefined ? found[0]?.id : start;
      const isMore = found.length > page.limit && commits.length > 0;
      return { commits, next: isMore ? `${first}.${Number(skip) + commits.length}` : null };
    },

    async branches(tree, signal) {
      const { stdout } = await look(tree, { script: branchesScript, maxBytes: maxRefBytes, signal });
      const lines = stdout.toString().split('\n');
      return lines.flatMap((line) => {
        const [name = '', commit = '', upstream = '', current, symref] = line.split('\0');
        // `origin/HEAD` is another name for one of the branches.
        if (!isStorableRef(name) || symref !== '') return [];
        const isRemote = name.startsWith('refs/remotes/');
        const short = name.slice(isRemote ? 'refs/remotes/'.length : 'refs/heads/'.length);
        return { name: short, commit, isRemote, isCurrent: current === '*', upstream: upstream || null };
      });
    },

    async diff(tree, { from = '', to = '', staged = false, paths = [] }, signal) {
      const args = [from, to, staged ? '--cached' : '', ...paths];
      const { stdout, isCut } = await look(tree, { script: diffScript, args, maxBytes: maxDiffBytes, signal });
      return { text: stdout.toString(), truncated: isCut };
    },

    async lacking(tree, commit, signal) {
      const call = { script: lackingScript, args: [commit], maxBytes: maxListBytes, signal };
      const answer = await shell.run(tree, call);
      if (answer.code === exitCodes.nothing || answer.isCut) return undefined;
      if (answer.code !== 0) throw failureOf(answer);
      const lines = answer.stdout.toString().split('\n');
      return lines.filter((line) => line !== '');
    },
  };
}
