import type { MirrorState, RefManifest, RefUpdate } from '../types.ts';
import { cannotBeBeside, isAcceptableRef } from './names.ts';

/** This ref keeps the uncommitted changes of a working tree, as a commit. */
export const uncommittedRef = 'refs/atrium/wip';

const keptPrefix = 'refs/atrium/';

/** The longest name of a draft's branch, in bytes. A mirror adds a prefix to it. */
export const maxDraftBranchBytes = 190;

/**
 * A ref that a repository keeps of a draft: `heads/main`, `tags/v1`, `wip`, `merge`, and `head` if HEAD is detached.
 */
export const draftRef = (draftId: string, name: string) => `${keptPrefix}drafts/${draftId}/${name}`;

/** The names of all refs that a repository keeps of a draft. */
export function refsOfDraft({ refs }: RefManifest, draftId: string): string[] {
  return Object.keys(refs).filter((name) => name.startsWith(draftRef(draftId, '')));
}

/** A manifest without the kept refs, except for these. */
export function withoutKept(manifest: RefManifest, but: readonly string[]): RefManifest {
  const named = new Set(but);
  const entries = Object.entries(manifest.refs).filter(([name]) => !name.startsWith(keptPrefix) || named.has(name));
  return { ...manifest, refs: Object.fromEntries(entries) };
}

/**
 * The repository's state as its draft sees it. The repository's branches become the draft's branches of `origin`. The
 * refs that the repository keeps of the draft become the draft's own branches.
 */
export function asDraft(
  { version, manifest }: MirrorState,
  { id, branch, head }: { id: string; branch: string; head: string | null },
): MirrorState {
  const own = draftRef(id, '');
  const refs: Record<string, string> = {};
  const names = Object.keys(manifest.refs);
  const heads = names.flatMap((name) => withoutPrefix(name, 'refs/heads/') ?? []);
  const [hasHead, isNoBranch] = [new Set(heads), cannotBeBeside(heads)];
  const isNoTag = cannotBeBeside(names.flatMap((name) => withoutPrefix(name, `${own}tags/`) ?? []));
  for (const [name, commit] of Object.entries(manifest.refs)) {
    const remote = withoutPrefix(name, 'refs/remotes/origin/');
    // If two names exclude each other, such as `a` and `a/b`, the repository's branch and the draft's own tag win.
    if (remote !== undefined && !hasHead.has(remote) && !isNoBranch(remote)) refs[name] = commit;
    const tag = withoutPrefix(name, 'refs/tags/');
    if (tag !== undefined && !isNoTag(tag)) refs[name] ??= commit;
    const kept = withoutPrefix(name, own);
    if (kept === 'wip') refs[uncommittedRef] = commit;
    else if (kept !== undefined && /^(?:heads|tags)\//.test(kept)) refs[`refs/${kept}`] = commit;
  }
  for (const name of heads) refs[`refs/remotes/origin/${name}`] = manifest.refs[`refs/heads/${name}`] ?? '';
  const at = manifest.refs[detachedRef(id)] ?? named(head) ?? `refs/heads/${branch}`;
  return { version, manifest: { ...manifest, head: at, refs } };
}

/**
 * Translates moves in a draft, and its HEAD if that is detached, into moves of the kept refs. `left` names the refs
 * that cannot be kept: with the prefix, their names are too long.
 */
export function movesOfDraft(
  { refs: moves, head }: { refs: readonly RefUpdate[]; head: string },
  { refs }: RefManifest,
  draftId: string,
): { moves: RefUpdate[]; left: string[] } {
  const keptAs = (name: string) => draftRef(draftId, name === uncommittedRef ? 'wip' : name.slice('refs/'.length));
  const isKept = ({ name }: { name: string }) => isAcceptableRef(keptAs(name));
  const left = moves.filter((move) => move.to !== null && !isKept(move));
  const wanted = moves.filter(isKept).map(({ name, to }) => ({ name: keptAs(name), to }));
  // A detached commit needs a ref that keeps it.
  const detached = named(head) === undefined ? head : left.find(({ name }) => name === head)?.to;
  wanted.push({ name: detachedRef(draftId), to: detached ?? null });
  return {
    moves: wanted.flatMap(({ name, to }) => {
      const from = refs[name] ?? null;
      return from === to ? [] : [{ name, from, to }];
    }),
    left: left.map(({ name }) => name),
  };
}

/** Keeps the commit that is checked out in a draft with a detached HEAD. */
const detachedRef = (draftId: string) => draftRef(draftId, 'head');

function named(head: string | null): string | undefined {
  return head?.startsWith('refs/') === true ? head : undefined;
}

function withoutPrefix(name: string, prefix: string): string | undefined {
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}
