import { Readable } from 'node:stream';
import { DomainError } from '../../../base/errors.ts';
import { idsOf } from '../mirror/repository.ts';
import { asLines } from '../process/git.ts';
import { gitError, tooManyRefs } from '../rules/failures.ts';
import { uncommittedRef } from '../rules/keptRefs.ts';
import { isAcceptableRef, isObjectId } from '../rules/names.ts';
import type { GitTrees, TreeRef } from '../treeTypes.ts';
import type { RefManifest, RefUpdate } from '../types.ts';
import { exitCodes } from './failures.ts';
import { enterToChange, enterToLook } from './scripts.ts';
import { newTags, requireReadable, requireWhole, type TreeTips } from './tips.ts';
import { allBoxes, type Box, boxOf, type TreeShell, changeTimeoutMs as timeoutMs } from './treeShell.ts';

const maxListBytes = 32 * 1_048_576;

const isFilledScript = `${enterToLook}
exit 0
`;

// `$3` is the inbox, `$4` the URL, `$5` the filter. The tree is made in `$6`, and moved when it is complete.
const fillScript = `
set -e
tree="./$1" item=$2 inbox="$PWD/$3" url=$4 filter=$5 new="$PWD/$6"
if [ "$(cat "$tree/.git/atrium-item" 2>/dev/null)" = "$item" ]; then exit 0; fi
mkdir -p -- "$(dirname -- "$tree")"
if [ -e "$tree" ] || [ -L "$tree" ]; then rmdir -- "$tree" 2>/dev/null || exit ${exitCodes.occupied}; fi
rm -rf -- "$new"
trap 'rm -rf -- "$new"' EXIT
trap 'exit 143' TERM
git init --quiet -- "$new"
cd -- "$new"
export GIT_DIR="$(pwd -P)/.git" GIT_WORK_TREE="$(pwd -P)"
if [ -n "$filter" ]; then
  git config core.repositoryFormatVersion 1
  git config extensions.partialClone origin
  git config remote.origin.promisor true
  git config remote.origin.partialclonefilter "$filter"
fi
if [ -n "$url" ]; then
  git config remote.origin.url "$url"
  git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
fi
if [ -s "$inbox/shallow" ]; then cp -- "$inbox/shallow" .git/shallow; fi
if [ -s "$inbox/bundle" ]; then git bundle unbundle "$inbox/bundle" >/dev/null; rm -f -- "$inbox/bundle"; fi
git update-ref --no-deref --stdin < "$inbox/refs"
git pack-refs --all
# Branches follow the remote's of their names.
git for-each-ref --format='%(refname:lstrip=2)' refs/heads | LC_ALL=C sort > "$inbox/heads"
git for-each-ref --format='%(refname:lstrip=3)' refs/remotes/origin | LC_ALL=C sort | LC_ALL=C comm -12 - "$inbox/heads" \\
  | sed -e 's/["\\]/\\&/g' -e 's|.*|[branch "&"]\\n\\tremote = origin\\n\\tmerge = "refs/heads/&"|' >> .git/config
head=$(cat "$inbox/head")
case "$head" in
  refs/heads/*)
    git symbolic-ref HEAD "$head" ;;
  *) git update-ref --no-deref HEAD "$head" ;;
esac
if git rev-parse --verify --quiet HEAD >/dev/null; then git reset --quiet --hard; fi
if git rev-parse --verify --quiet ${uncommittedRef} >/dev/null; then
  git read-tree --reset -u ${uncommittedRef}
  git reset --quiet
  git update-ref --no-deref -d ${uncommittedRef}
fi
printf %s "$item" > .git/atrium-item
cd - >/dev/null
# The disk has all of the tree before it gets its name: half a tree would be in the way of another.
sync -f -- "$new"
mv -T -- "$new" "$tree"
sync -- "$(dirname -- "$tree")"
`;

// Another folder may stand in the tree's place. It is not removed.
const removeScript = `
tree="./$1"
[ ! -L "$tree" ] && [ "$(cat "$tree/.git/atrium-item" 2>/dev/null)" = "$2" ] || exit 0
exec rm -rf -- "$tree"
`;

// `fill` packs all refs, and git never removes the file of packed refs: if the file is missing, refs are lost.
const listScript = `${enterToLook}
git symbolic-ref --quiet HEAD || git rev-parse --verify --quiet HEAD || echo
git rev-parse --verify --quiet HEAD || echo
{ [ -s .git/packed-refs ] || [ -d .git/reftable ]; } && echo packed || echo lost
exec git for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags
`;

// `$1` has the bundle and the refs. Other refs of the remote are removed first, because a branch `a` blocks `a/b`. `$2`
// is a pushed branch: it follows the remote's branch, as after `git push -u`, unless it follows another.
const updateScript = `${enterToChange}
set -e
cd - >/dev/null
inbox="$PWD/$1"
cd - >/dev/null
if [ -s "$inbox/bundle" ]; then git bundle unbundle "$inbox/bundle" >/dev/null; rm -f -- "$inbox/bundle"; fi
{
  echo start
  git for-each-ref --format='%(refname) %(symref)' refs/remotes/origin \\
    | sed -n 's/ $//p' | grep -vxFf "$inbox/names" | sed 's/^/delete /'
  printf '%s\\n' prepare commit start
  cat "$inbox/refs"
  printf '%s\\n' prepare commit
} > "$inbox/moves"
git update-ref --no-deref --stdin < "$inbox/moves" >/dev/null
if [ -n "$2" ] && git show-ref --verify --quiet "refs/heads/$2" && git show-ref --verify --quiet "refs/remotes/origin/$2" \\
  && ! git config --get "branch.$2.remote" >/dev/null; then
  { git config "branch.$2.remote" origin && git config "branch.$2.merge" "refs/heads/$2"; } || true
fi
`;

// `$1` has the wanted tips and the mirror's ids, of which some may be unknown here. `$2` has uncommitted work: `$3` is
// its current commit, and `$4` the last saved one.
const packScript = `${enterToLook}
set -e
cd - >/dev/null
outbox="$PWD/$1" now="$PWD/$2/$3/objects" before="$PWD/$2/$4/objects"
cd - >/dev/null
if [ -n "$3" ] && [ -d "$now" ]; then export GIT_OBJECT_DIRECTORY="$now"; fi
if [ -n "$4" ] && [ -d "$before" ]; then export GIT_ALTERNATE_OBJECT_DIRECTORIES="$before"; fi
git cat-file --batch-check='%(objectname) %(objecttype)' < "$outbox/have" \\
  | sed -n 's/^\\([0-9a-f]*\\) \\(commit\\|tag\\)$/^\\1/p' > "$outbox/revisions"
# Git leaves out what the parents of a commit have, and the fourth argument is no parent.
if [ -n "$4" ] && files=$(git rev-parse --verify --quiet "$4^{tree}"); then
  printf '^%s\\n' "$files" >> "$outbox/revisions"
fi
cat "$outbox/want" >> "$outbox/revisions"
git pack-objects --revs --stdout --thin --delta-base-offset --quiet --missing=allow-any \\
  < "$outbox/revisions" > "$outbox/pack.new"
mv -- "$outbox/pack.new" "$outbox/pack"
`;

type Exchange = Pick<GitTrees, 'isFilled' | 'fill' | 'update' | 'tips' | 'bundleOut' | 'remove' | 'settle'>;

/** Exchanges objects and refs between a tree and its mirror, by files in the computer’s home. */
export function createExchange(shell: TreeShell, { maxRefs }: { maxRefs: number }): Exchange {
  async function put(tree: TreeRef, path: string, body: Uint8Array | Readable, signal: AbortSignal): Promise<void> {
    const client = await shell.client(tree);
    try {
      await client.writeFile(path, body, { parents: true, mode: 0o600, signal });
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'DISK_FULL') throw error;
      throw gitError('GIT_TREE_FULL', 'There is no room left on the computer.', { cause: error });
    }
  }

  const list = (tree: TreeRef, path: string, lines: readonly string[], signal: AbortSignal) =>
    put(tree, path, Buffer.from(asLines(lines)), signal);

  const clear = async (tree: TreeRef, box: Box) => (await shell.client(tree)).clearPath(boxOf(tree, box));

  /** Clears the boxes if the work fails: they may have filled the disk. */
  async function clearing<T>(tree: TreeRef, boxes: readonly Box[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      for (const box of boxes) await clear(tree, box).catch(() => undefined); // the next attempt writes over it
      throw error;
    }
  }

  async function tipsOf(tree: TreeRef, signal: AbortSignal): Promise<TreeTips> {
    const { stdout, said, isCut } = await shell.do(tree, { script: listScript, maxBytes: maxListBytes, signal });
    if (isCut) throw gitError('GIT_TOO_LARGE', 'The repository has more branches and tags than can be saved.');
    const [at = '', commit = '', packed, ...lines] = stdout.toString().split('\n');
    requireReadable(at, said);
    const refs: Record<string, string> = {};
    for (const line of lines) {
      const [id, name] = [line.slice(0, 40), line.slice(41)];
      if (isObjectId(id) && isOfTree(name) && isSavable(name)) refs[name] = id;
    }
    // If the checked-out branch cannot be saved, its commit is saved as a detached HEAD.
    const head = isSavableHead(at) || !isObjectId(commit) ? at : commit;
    if (Object.keys(refs).length > maxRefs) throw tooManyRefs(maxRefs);
    return { head, refs, hasPacked: packed === 'packed' };
  }

  /** A file of the home. It is opened on the first read, because the host closes an idle connection. */
  function opened(tree: TreeRef, path: string, signal: AbortSignal): Readable {
    async function* bytes() {
      const { body } = await (await shell.client(tree)).readFile(path, { signal });
      yield* body;
    }
    return Readable.from(bytes(), { objectMode: false });
  }

  return {
    async isFilled(tree, signal) {
      return (await shell.run(tree, { script: isFilledScript, signal })).code === 0;
    },

    async fill(tree, bundle, { manifest }, { url }, signal) {
      const inbox = boxOf(tree, 'in');
      await clearing(tree, ['in', 'new'], async () => {
        if (bundle !== null) await put(tree, `${inbox}/bundle`, bundle.open(), signal);
        if (manifest.shallow.length > 0) await list(tree, `${inbox}/shallow`, manifest.shallow, signal);
        await list(tree, `${inbox}/refs`, updatesOf(manifest, /^refs\//), signal);
        await list(tree, `${inbox}/head`, [manifest.head], signal);
        const args = [inbox, url ?? '', manifest.filter ?? '', boxOf(tree, 'new')];
        await shell.do(tree, { script: fillScript, args, id: `${tree.workId}-fill`, timeoutMs, signal });
      });
      await clear(tree, 'in');
    },

    async update(tree, bundle, { manifest }, signal, pushed = '') {
      const inbox = boxOf(tree, 'in');
      const names = Object.keys(manifest.refs).filter((name) => name.startsWith('refs/remotes/origin/'));
      const tags = newTags(manifest, await tipsOf(tree, signal));
      const updates = [...updatesOf(manifest, /^refs\/remotes\/origin\//), ...updatesOf(tags, /^refs\//)];
      await clearing(tree, ['in'], async () => {
        if (bundle !== null) await put(tree, `${inbox}/bundle`, bundle.open(), signal);
        await list(tree, `${inbox}/refs`, updates, signal);
        await list(tree, `${inbox}/names`, names, signal);
        const call = { script: updateScript, args: [inbox, pushed], timeoutMs, signal };
        await shell.do(tree, { ...call, id: `${tree.workId}-update` });
      });
      await clear(tree, 'in');
    },

    async tips(tree, signal) {
      return [...new Set(Object.values((await tipsOf(tree, signal)).refs))];
    },

    async bundleOut(tree, { manifest }, signal, kept) {
      const tips = await tipsOf(tree, signal);
      requireWhole(manifest, tips);
      const { refs } = tips;
      const head = isObjectId(tips.head) || isSavableHead(tips.head) ? tips.head : manifest.head;
      const uncommitted = kept === undefined ? manifest.refs[uncommittedRef] : kept.commit;
      if (uncommitted !== undefined) refs[uncommittedRef] = uncommitted;
      const updates = movesOf(manifest, refs);
      const known = new Set(idsOf(manifest));
      const want = [...updates.flatMap(({ to }) => to ?? []), ...(isObjectId(head) ? [head] : [])];
      const wanted = [...new Set(want.filter((id) => !known.has(id)))];
      if (wanted.length === 0) return { bundle: undefined, refs: updates, head };
      const outbox = boxOf(tree, 'out');
      await clearing(tree, ['out'], async () => {
        await list(tree, `${outbox}/want`, wanted, signal);
        await list(tree, `${outbox}/have`, [...known], signal);
        // No id: an earlier attempt may have packed fewer objects than are wanted now.
        const args = [outbox, boxOf(tree, 'wip'), kept?.commit ?? '', manifest.refs[uncommittedRef] ?? ''];
        await shell.do(tree, { script: packScript, args, timeoutMs, signal });
      });
      return { bundle: opened(tree, `${outbox}/pack`, signal), refs: updates, head };
    },

    async remove(tree, signal) {
      await shell.do(tree, { script: removeScript, timeoutMs, signal });
      for (const box of allBoxes) await clear(tree, box);
    },

    settle: (tree) => clear(tree, 'out'),
  };
}

/** Whether a row can hold the name: bytes that are not UTF-8 would become another name. */
function isSavable(name: string): boolean {
  return isAcceptableRef(name) && !name.includes('\uFFFD');
}

function isSavableHead(name: string): boolean {
  return name.startsWith('refs/heads/') && isSavable(name);
}

/** Lines for `git update-ref --stdin`. */
function updatesOf({ refs }: Pick<RefManifest, 'refs'>, which: RegExp): string[] {
  return Object.entries(refs).flatMap(([name, id]) => (which.test(name) ? `update ${name} ${id}` : []));
}

/** Also checks the tree’s own answer, because its git may be any program. */
function isOfTree(name: string): boolean {
  return /^refs\/(?:heads|tags)\//.test(name);
}

/** The moves from the saved refs to the tree’s. Only branches, tags and uncommitted work belong to the tree. */
function movesOf({ refs: saved }: RefManifest, refs: Record<string, string>): RefUpdate[] {
  const names = Object.keys(saved).filter((name) => isOfTree(name) || name === uncommittedRef);
  const gone = names.filter((name) => refs[name] === undefined);
  const moved = Object.keys(refs).filter((name) => saved[name] !== refs[name]);
  return [...gone, ...moved].map((name) => ({ name, from: saved[name] ?? null, to: refs[name] ?? null }));
}
