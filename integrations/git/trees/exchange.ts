import { Readable } from 'node:stream';
import { DomainError } from '../../../base/errors.ts';
import { idsOf } from '../mirror/repository.ts';
import { gitError, tooManyRefs } from '../rules/failures.ts';
import { uncommittedRef } from '../rules/keptRefs.ts';
import { isAcceptableRef } from '../rules/refName.ts';
import type { TreeRef, TreeWork, Uncommitted } from '../treeTypes.ts';
import type { MadeBundle, MirrorState, RefManifest, RefUpdate } from '../types.ts';
import { allBoxes, type Box, boxOf } from './boxes.ts';
import { enterToChange, enterToLook } from './scripts.ts';
import { newTags, requireReadable, requireWhole, type TreeTips } from './tips.ts';
import { exitCodes, type TreeShell } from './treeShell.ts';

const maxListBytes = 32 * 1_048_576;
/** A large tree is written to a disk that others use too. */
const timeoutMs = 30 * 60_000;

const isFilledScript = `${enterToLook}
exit 0
`;

// In `$6` until it is whole. `$3` is the folder with what is to go in, `$4` its URL, `$5` its filter.
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
# All of it is on the disk before it has its name: half a tree is nobody's, and would be in the way of another.
sync -f -- "$new"
mv -T -- "$new" "$tree"
sync -- "$(dirname -- "$tree")"
`;

// Only the repository's own: another folder may have come to its place.
const removeScript = `
tree="./$1"
[ ! -L "$tree" ] && [ "$(cat "$tree/.git/atrium-item" 2>/dev/null)" = "$2" ] || exit 0
exec rm -rf -- "$tree"
`;

// A tree is filled with all its refs packed, and git never removes the file of those.
const listScript = `${enterToLook}
git symbolic-ref --quiet HEAD || git rev-parse --verify --quiet HEAD || echo
git rev-parse --verify --quiet HEAD || echo
{ [ -s .git/packed-refs ] || [ -d .git/reftable ]; } && echo packed || echo lost
exec git for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags
`;

// `$1` has the bundle and the refs; those of the remote that are not named go, and do so first: a branch `a` stands in
// the way of `a/b`. `$2` is a branch that was pushed: it follows the remote's, as after `git push -u`, unless it follows
// another one.
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

// `$1` has the tips that are wanted and the ids that the mirror has, some of which may be unknown here. In `$2` is what
// is in no commit: as `$3` now, and as `$4` when that was saved last.
const packScript = `${enterToLook}
set -e
cd - >/dev/null
outbox="$PWD/$1" now="$PWD/$2/$3/objects" before="$PWD/$2/$4/objects"
cd - >/dev/null
if [ -n "$3" ] && [ -d "$now" ]; then export GIT_OBJECT_DIRECTORY="$now"; fi
if [ -n "$4" ] && [ -d "$before" ]; then export GIT_ALTERNATE_OBJECT_DIRECTORIES="$before"; fi
git cat-file --batch-check='%(objectname) %(objecttype)' < "$outbox/have" \\
  | sed -n 's/^\\([0-9a-f]*\\) \\(commit\\|tag\\)$/^\\1/p' > "$outbox/revisions"
# Git itself leaves out what parents of a commit have, and this is none.
if [ -n "$4" ] && files=$(git rev-parse --verify --quiet "$4^{tree}"); then
  printf '^%s\\n' "$files" >> "$outbox/revisions"
fi
cat "$outbox/want" >> "$outbox/revisions"
git pack-objects --revs --stdout --thin --delta-base-offset --quiet --missing=allow-any \\
  < "$outbox/revisions" > "$outbox/pack.new"
mv -- "$outbox/pack.new" "$outbox/pack"
`;

/** What goes between a tree and its mirror, by files in the computer’s home. */
export function createExchange(shell: TreeShell, { maxRefs }: { maxRefs: number }) {
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
    put(tree, path, Buffer.from(lines.map((line) => `${line}\n`).join('')), signal);

  /** Also what was put there for a process that had ended already. */
  async function clear(tree: TreeRef, way: Box): Promise<void> {
    try {
      await (await shell.client(tree)).deleteFile(boxOf(tree, way), { recursive: true });
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'FILE_NOT_FOUND') throw error;
    }
  }

  /** Leaves nothing behind where it fails: the disk may be full of it. */
  async function clearing<T>(tree: TreeRef, ways: readonly Box[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      for (const way of ways) await clear(tree, way).catch(() => undefined); // the next attempt writes over it
      throw error;
    }
  }

  async function tipsOf(tree: TreeRef, signal: AbortSignal): Promise<TreeTips> {
    const args = [tree.path, tree.itemId];
    const { stdout, said, isCut } = await shell.do(tree, { script: listScript, args, maxBytes: maxListBytes, signal });
    if (isCut) throw gitError('GIT_TOO_LARGE', 'The repository has more branches and tags than can be saved.');
    const [at = '', commit = '', packed, ...lines] = stdout.toString().split('\n');
    requireReadable(at, said);
    const refs: Record<string, string> = {};
    for (const line of lines) {
      const [id = '', name = ''] = [line.slice(0, 40), line.slice(41)];
      if (isId(id) && isOfTree(name) && isSavable(name)) refs[name] = id;
    }
    // Of a branch that stays behind, its commit is saved as that of no branch.
    const head = isId(at) || isSavableHead(at) || !isId(commit) ? at : commit;
    if (Object.keys(refs).length > maxRefs) throw tooManyRefs(maxRefs);
    return { head, refs, hasPacked: packed === 'packed' };
  }

  /** A file of the home, opened when it is read: until then a host that hears nothing would close it. */
  function opened(tree: TreeRef, path: string, signal: AbortSignal): Readable {
    async function* bytes() {
      const { body } = await (await shell.client(tree)).readFile(path, { signal });
      yield* body;
    }
    return Readable.from(bytes(), { objectMode: false });
  }

  return {
    async isFilled(tree: TreeRef, signal: AbortSignal): Promise<boolean> {
      const { code } = await shell.run(tree, { script: isFilledScript, args: [tree.path, tree.itemId], signal });
      return code === 0;
    },

    async fill(
      tree: TreeWork,
      bundle: MadeBundle | null,
      { manifest }: MirrorState,
      { url }: { url: string | null },
      signal: AbortSignal,
    ): Promise<void> {
      const inbox = boxOf(tree, 'in');
      await clearing(tree, ['in', 'new'], async () => {
        if (bundle !== null) await put(tree, `${inbox}/bundle`, bundle.open(), signal);
        if (manifest.shallow.length > 0) await list(tree, `${inbox}/shallow`, manifest.shallow, signal);
        await list(tree, `${inbox}/refs`, updatesOf(manifest, /^refs\//), signal);
        await list(tree, `${inbox}/head`, [manifest.head], signal);
        const args = [tree.path, tree.itemId, inbox, url ?? '', manifest.filter ?? '', boxOf(tree, 'new')];
        await shell.do(tree, { script: fillScript, args, id: `${tree.workId}-fill`, timeoutMs, signal });
      });
      await clear(tree, 'in');
    },

    async update(
      tree: TreeWork,
      bundle: MadeBundle | null,
      { manifest }: MirrorState,
      signal: AbortSignal,
      pushed = '',
    ): Promise<void> {
      const inbox = boxOf(tree, 'in');
      const names = Object.keys(manifest.refs).filter((name) => name.startsWith('refs/remotes/origin/'));
      const tags = newTags(manifest, await tipsOf(tree, signal));
      const updates = [...updatesOf(manifest, /^refs\/remotes\/origin\//), ...updatesOf(tags, /^refs\//)];
      await clearing(tree, ['in'], async () => {
        if (bundle !== null) await put(tree, `${inbox}/bundle`, bundle.open(), signal);
        await list(tree, `${inbox}/refs`, updates, signal);
        await list(tree, `${inbox}/names`, names, signal);
        const args = [tree.path, tree.itemId, inbox, pushed];
        await shell.do(tree, { script: updateScript, args, id: `${tree.workId}-update`, timeoutMs, signal });
      });
      await clear(tree, 'in');
    },

    async tips(tree: TreeRef, signal: AbortSignal): Promise<string[]> {
      return [...new Set(Object.values((await tipsOf(tree, signal)).refs))];
    },

    async bundleOut(
      tree: TreeWork,
      { manifest }: MirrorState,
      signal: AbortSignal,
      kept?: Uncommitted,
    ): Promise<{ bundle: Readable | undefined; refs: RefUpdate[]; head: string }> {
      const tips = await tipsOf(tree, signal);
      requireWhole(manifest, tips);
      const { refs } = tips;
      const head = isId(tips.head) || isSavableHead(tips.head) ? tips.head : manifest.head;
      const uncommitted = kept === undefined ? manifest.refs[uncommittedRef] : kept.commit;
      if (uncommitted !== undefined) refs[uncommittedRef] = uncommitted;
      const updates = movesOf(manifest, refs);
      const known = new Set(idsOf(manifest));
      const want = [...updates.map(({ to }) => to), isId(head) ? head : null];
      const wanted = [...new Set(want.filter((id) => id !== null && !known.has(id)))];
      if (wanted.length === 0) return { bundle: undefined, refs: updates, head };
      const outbox = boxOf(tree, 'out');
      await clearing(tree, ['out'], async () => {
        await list(tree, `${outbox}/want`, wanted as string[], signal);
        await list(tree, `${outbox}/have`, [...known], signal);
        // Not by the order’s name: what is wanted may be more than an attempt before has packed.
        const boxes = [outbox, boxOf(tree, 'wip'), kept?.commit ?? '', manifest.refs[uncommittedRef] ?? ''];
        await shell.do(tree, { script: packScript, args: [tree.path, tree.itemId, ...boxes], timeoutMs, signal });
      });
      return { bundle: opened(tree, `${outbox}/pack`, signal), refs: updates, head };
    },

    async remove(tree: TreeRef, signal: AbortSignal): Promise<void> {
      await shell.do(tree, { script: removeScript, args: [tree.path, tree.itemId], timeoutMs, signal });
      for (const way of allBoxes) await clear(tree, way);
    },

    settle: (tree: TreeWork): Promise<void> => clear(tree, 'out'),
  };
}

/** A row names no other ref than this one. */
function isSavable(name: string): boolean {
  return isAcceptableRef(name) && !name.includes('\uFFFD');
}

function isSavableHead(name: string): boolean {
  return name.startsWith('refs/heads/') && isSavable(name);
}

function isId(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

/** Lines for `git update-ref --stdin`. */
function updatesOf({ refs }: Pick<RefManifest, 'refs'>, which: RegExp): string[] {
  return Object.entries(refs)
    .filter(([name]) => which.test(name))
    .map(([name, id]) => `update ${name} ${id}`);
}

/** Whatever a tree’s git says that it has: it may be any program. */
function isOfTree(name: string): boolean {
  return /^refs\/(?:heads|tags)\//.test(name);
}

/** Branches, tags and what is not committed are the tree’s; what else the mirror has is its own. */
function movesOf({ refs: saved }: RefManifest, refs: Record<string, string>): RefUpdate[] {
  const gone = Object.keys(saved).filter(
    (name) => (isOfTree(name) || name === uncommittedRef) && refs[name] === undefined,
  );
  return [
    ...gone.map((name) => ({ name, from: saved[name] ?? null, to: null })),
    ...Object.entries(refs)
      .filter(([name, id]) => saved[name] !== id)
      .map(([name, id]) => ({ name, from: saved[name] ?? null, to: id })),
  ];
}
