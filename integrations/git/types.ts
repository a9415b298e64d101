import type { Readable } from 'node:stream';

/**
 * Git in two places. A *mirror* is a bare repository of our own, the only one that talks to a remote; a *tree* is the
 * repository with a working tree in a computer, where users and agents change files. They know each other by bundles
 * only, because git run over a `.git/config` that a stranger wrote runs the stranger's programs.
 *
 * Both have the refs that a clone has: `refs/heads/*` are the user's branches, `refs/remotes/origin/*` those of the
 * remote as it was seen last, `refs/tags/*` its tags, `refs/atrium/*` what Atrium keeps (uncommitted work, drafts).
 *
 * Failures are DomainErrors whose code is among `GitFailure` (rules/failures.ts), with a sentence that names neither
 * the URL's credentials nor a path of this machine.
 */

/** One repository: an item of a space's drive. */
export interface RepositoryRef {
  spaceId: string;
  itemId: string;
}

/** What `git` sends as a user and a password. A token's user is `x-access-token`, or anything. */
export interface GitCredential {
  username: string;
  password: string;
}

export interface RemoteSource {
  /** As `parseRemoteUrl` (rules/remoteUrl.ts) spells it: https, without user and password. */
  url: string;
  /** Called when the server asks, and only for exactly this URL: tokens are minted no earlier than they are needed. */
  credential?: (() => Promise<GitCredential>) | undefined;
}

/** Which blobs the remote keeps until they are needed: `blob:none`, or those larger than this. */
export type GitFilter = 'blob:none' | `blob:limit=${number}`;

export interface CloneSource extends RemoteSource {
  /** The branch to check out; without it, the remote's own. */
  branch?: string | undefined;
  /** How many commits of that branch, and then no other branch; without it, everything. */
  depth?: number | undefined;
  filter?: GitFilter | undefined;
}

export type GitPhase =
  | 'connecting'
  | 'counting' // the server looks for what to send
  | 'receiving'
  | 'resolving' // deltas, and the check of each object
  | 'checking' // the size of the tree, LFS pointers, submodules
  | 'saving' // to the object store
  | 'sending'; // of a push

export interface GitProgress {
  phase: GitPhase;
  /** Of this phase; null where its end is not known. */
  percent: number | null;
  /** Received or sent in this attempt. */
  bytes: number;
  objects: number;
  totalObjects: number | null;
  /** Objects that an earlier attempt had brought, where there was one. */
  keptObjects: number;
}

export interface GitHooks {
  /** Called at most a few times a second, never after the call has settled. */
  onProgress?: (progress: GitProgress) => void;
  /** Ends git's processes; what arrived stays for the next attempt. */
  signal: AbortSignal;
}

/** Where every ref is. It is the truth about a repository together with the objects of its bundles. */
export interface RefManifest {
  /** `refs/heads/main`, which need not exist yet (an empty repository), or a commit id. */
  head: string;
  /** Full names of refs to object ids. */
  refs: Record<string, string>;
  /** The commits whose parents are not there, for a shallow clone; else empty. */
  shallow: string[];
  /** Of a partial clone. */
  filter: GitFilter | null;
}

/** A saved state of a mirror: its number grows by one with each change. */
export interface MirrorState {
  version: number;
  manifest: RefManifest;
}

/** What a checkout of a commit would bring. */
export interface TreeFacts {
  files: number;
  bytes: number;
  /** Pointers of Git LFS stay pointers: their files are not fetched. */
  lfsPointers: number;
  /** Paths of submodules, which stay empty folders. At most 100. */
  submodules: string[];
}

export interface CloneResult extends MirrorState {
  /** Null where the remote has no commit yet. */
  defaultBranch: string | null;
  tree: TreeFacts;
}

export interface PushRef {
  /** A ref of the mirror, or null to delete `to`. */
  from: string | null;
  /** A full name of the remote: `refs/heads/…` or `refs/tags/…`. */
  to: string;
  /** Overwrites what the remote has, if that is still what was fetched last. */
  force?: boolean;
}

/** Moves a ref of the mirror, if it is where `from` says (or already where `to` says); null means absent. */
export interface RefUpdate {
  name: string;
  from: string | null;
  to: string | null;
}

/** A merge of one branch into another, without any working tree. */
export interface MergeRequest {
  /** The branch that is merged into. It stays where it is. */
  into: string;
  /** The ref with what is merged. */
  from: string;
  /** The ref that keeps the result. */
  to: string;
  /** Undefined where whoever asked for it is gone. */
  author: GitPerson | undefined;
  at: Date;
  message: string;
}

export interface MergeResult {
  /** The commit at which `into` has both. */
  commit: string;
  /** No commit was made: one side has all of the other. */
  fastForward: boolean;
}

/**
 * A file in git's bundle format. Of a complete repository anybody can clone it. Of a shallow or partial one it is
 * taken in by: `git init`, the manifest's `shallow` into `.git/shallow`, `git bundle unbundle`, `git update-ref --stdin`.
 * Dispose of it when it has been read.
 */
export interface MadeBundle extends AsyncDisposable {
  path: string;
  bytes: number;
  /** May be called more than once. */
  open(): Readable;
  manifest: RefManifest;
}

/** Git on our side. Used by activities only; one call at a time for a repository is their workflow's order. */
export interface GitMirrors {
  /**
   * Brings a repository here and saves it. What arrives of an attempt that fails stays on this machine, and the next
   * one goes on from there. Answers the saved state when it has been cloned already.
   */
  clone(ref: RepositoryRef, source: CloneSource, hooks: GitHooks): Promise<CloneResult>;
  /** Brings `refs/remotes/origin/*` up to date, and new tags: those that are here are neither moved nor removed. */
  fetch(ref: RepositoryRef, source: RemoteSource, hooks: GitHooks): Promise<MirrorState>;
  /** `output` is git's own words, without the URL. 409 `GIT_CONFLICT` where the remote has what we do not. */
  push(
    ref: RepositoryRef,
    source: RemoteSource,
    refs: readonly PushRef[],
    hooks: GitHooks,
  ): Promise<MirrorState & { output: string }>;
  /**
   * Of a partial clone: brings the files of a commit, and bundles those that a tree lacks, by their ids. Null where that
   * is nothing, and for other clones, which have all files.
   */
  fetchFiles(
    ref: RepositoryRef,
    source: RemoteSource,
    commit: string,
    lacking: readonly string[] | 'all',
    hooks: GitHooks,
  ): Promise<MadeBundle | null>;
  /**
   * Everything that a receiver lacks who has these commits (unknown ones are ignored). Null when it lacks no object:
   * then only its refs are to be moved. What Atrium keeps beside branches and tags is left out, but for the refs in
   * `kept`.
   */
  bundleFor(
    ref: RepositoryRef,
    have: readonly string[],
    signal: AbortSignal,
    kept?: readonly string[],
  ): Promise<{ bundle: MadeBundle | null } & MirrorState>;
  /**
   * Merges, or fast-forwards, and keeps the result under a ref of ours. Throws 409 `GIT_CONFLICT`, which names the files,
   * and 422 `GIT_REF_UNKNOWN`; then nothing has changed.
   */
  merge(ref: RepositoryRef, merge: MergeRequest, signal: AbortSignal): Promise<MergeResult>;
  /**
   * Takes in what a tree has made, checked by fsck, and saves it. `bundle` is a bundle or a bare pack, and may be
   * absent where only refs move. A repository that has never been saved begins with this. `head` moves HEAD too.
   */
  receive(
    ref: RepositoryRef,
    change: { bundle?: Readable | undefined; refs: readonly RefUpdate[]; head?: string | undefined },
    signal: AbortSignal,
  ): Promise<MirrorState>;
  /** What is saved, without touching the folder; undefined before the first save. */
  state(ref: RepositoryRef): Promise<MirrorState | undefined>;
  /** Counts a commit's tree, within the limits (422 `GIT_TOO_LARGE`), before it is checked out. */
  measure(ref: RepositoryRef, commit: string, signal: AbortSignal): Promise<TreeFacts>;
  /** Removes what this machine has of it. The bundles are the caller's to remove. */
  remove(ref: RepositoryRef, signal: AbortSignal): Promise<void>;
  /** Tidies up what this machine has of all repositories, but those in which somebody works. Answers how many are gone. */
  sweep(sweep: MirrorSweep): Promise<number>;
}

export interface MirrorSweep {
  /** Those of the items that are repositories still. */
  known(itemIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** One that cannot be tidied up does not keep the others from it. */
  onFailure(itemId: string, error: unknown): void;
  signal: AbortSignal;
}

/** One object in the store, of the chain that restores a mirror. */
export interface StoredBundle {
  /** The state that it brings. */
  version: number;
  objectKey: string;
  bytes: number;
}

export interface SavedMirror extends MirrorState {
  /** In the order in which they are taken in. Empty for a repository without a commit. */
  bundles: StoredBundle[];
}

/** The rows about mirrors, which the activities bring: they are the truth, and a mirror's folder is a cache of it. */
export interface MirrorRecords {
  current(ref: RepositoryRef): Promise<SavedMirror | undefined>;
  /**
   * Counts a bundle against the space's quota and notes its key, before bytes go there. Throws 413 `QUOTA_EXCEEDED`.
   * Disposing of it removes what has not been saved by then; of a process that is killed, a sweep does.
   */
  plan(ref: RepositoryRef, bundle: StoredBundle): Promise<AsyncDisposable>;
  /**
   * Compare and set: `next.version` becomes current if `next.version - 1` is (0 before the first), else false. `bundle`
   * is null where only refs have moved. With `replacesAll` it takes the place of the whole chain, whose objects may go.
   */
  save(ref: RepositoryRef, next: MirrorState & { bundle: StoredBundle | null; replacesAll: boolean }): Promise<boolean>;
}

/** A working tree in a computer, which may be asleep. */
export interface TreeRef extends RepositoryRef {
  computerId: string;
  /** Below the computer's home. */
  path: string;
}

/** A change of a tree. What has the same `workId` is done once, however often it is asked for. */
export interface TreeWork extends TreeRef {
  workId: string;
}

/** As `git status --porcelain=v2` tells it. */
export interface GitStatus {
  /** Null where HEAD is detached. */
  branch: string | null;
  /** Null before the first commit. */
  commit: string | null;
  upstream: string | null;
  ahead: number;
  behind: number;
  /** What somebody has begun, and neither finished nor aborted. */
  unfinished: 'merge' | 'rebase' | 'cherryPick' | 'revert' | 'patches' | null;
  changes: GitChange[];
  /** There are more changes than are listed. */
  truncated: boolean;
}

export interface GitChange {
  path: string;
  /** Where it was, for a rename or a copy. */
  oldPath: string | null;
  /** In the index and in the working tree; null is unchanged. */
  staged: GitChangeKind | null;
  unstaged: GitChangeKind | null;
}

export type GitChangeKind =
  | 'added'
  | 'modified'
  | 'deleted'
  | 'renamed'
  | 'copied'
  | 'typeChanged'
  | 'conflicted'
  | 'untracked';

export interface GitCommit {
  id: string;
  parents: string[];
  author: GitPerson;
  committer: GitPerson;
  /** RFC 3339. */
  committedAt: string;
  /** May be cut: git allows a message of any size. */
  message: string;
}

export interface GitPerson {
  name: string;
  email: string;
}

export interface GitBranch {
  /** Short: `main`, and of the remote `origin/main`. */
  name: string;
  commit: string;
  isRemote: boolean;
  isCurrent: boolean;
  upstream: string | null;
}

/** What is in no commit of a working tree. */
export interface Uncommitted {
  /** That has it; undefined where there is nothing. */
  commit: string | undefined;
  /** What could not be kept, in words; undefined where all was. */
  left: string | undefined;
}

export interface GitDiff {
  /** In git's unified format. */
  text: string;
  truncated: boolean;
}

/** What is compared: two commits or branches; without `to` the working tree; `staged` is the index against `from`. */
export interface DiffRange {
  from?: string | undefined;
  to?: string | undefined;
  staged?: boolean | undefined;
  paths?: readonly string[] | undefined;
}

/** Git in a computer's sandbox. Reads change nothing and may run at any time; writes are in their workflow's order. */
export interface GitTrees {
  status(tree: TreeRef, signal: AbortSignal): Promise<GitStatus>;
  log(
    tree: TreeRef,
    page: { from?: string | undefined; after?: string | undefined; limit: number; path?: string | undefined },
    signal: AbortSignal,
  ): Promise<{ commits: GitCommit[]; next: string | null }>;
  branches(tree: TreeRef, signal: AbortSignal): Promise<GitBranch[]>;
  diff(tree: TreeRef, range: DiffRange, signal: AbortSignal): Promise<GitDiff>;
  /** The ids of what a partial clone lacks of a commit's files; undefined where the tree does not know the commit. */
  lacking(tree: TreeRef, commit: string, signal: AbortSignal): Promise<string[] | undefined>;

  /** Whether its files are there. */
  isFilled(tree: TreeRef, signal: AbortSignal): Promise<boolean>;
  /**
   * Makes the tree, in one step for whoever looks; one that is there stays as it is. `url` becomes its `origin`. What
   * was not committed is in it again, where the state has a ref `refs/atrium/wip`.
   */
  fill(
    tree: TreeWork,
    bundle: MadeBundle | null,
    state: MirrorState,
    origin: { url: string | null },
    signal: AbortSignal,
  ): Promise<void>;
  /** The ids that its branches and tags have, and HEAD. */
  tips(tree: TreeRef, signal: AbortSignal): Promise<string[]>;
  /** Brings what the mirror has fetched: objects, `refs/remotes/origin/*`, and tags that the tree does not have. */
  update(tree: TreeWork, bundle: MadeBundle | null, state: MirrorState, signal: AbortSignal): Promise<void>;
  /** Of these paths, or of everything. 409 `GIT_NOTHING_TO_COMMIT`, or `GIT_CONFLICT` where a merge is unresolved. */
  commit(
    tree: TreeWork,
    commit: { message: string; author: GitPerson | undefined; at: Date; paths?: readonly string[] | undefined },
    signal: AbortSignal,
  ): Promise<{ id: string; output: string }>;
  /** `output` is git’s own words, which are none for a branch that is not checked out. 409 `GIT_BRANCH_EXISTS`. */
  branch(
    tree: TreeWork,
    branch: { name: string; from?: string | undefined; checkout: boolean },
    signal: AbortSignal,
  ): Promise<{ output: string }>;
  checkout(tree: TreeWork, to: { branch: string }, signal: AbortSignal): Promise<{ output: string }>;
  /**
   * Fast-forwards the current branch, or merges a ref into it; a conflict leaves the tree as it was. 409 `GIT_CONFLICT`
   * also in the middle of somebody’s merge, rebase, cherry-pick or revert, which is left alone.
   */
  merge(
    tree: TreeWork,
    merge: { ref: string; author: GitPerson | undefined; at: Date; fastForwardOnly: boolean },
    signal: AbortSignal,
  ): Promise<{ output: string }>;
  /**
   * Moves a branch to a commit that has all of it, and the files with it where it is checked out. 409 `GIT_CONFLICT`
   * where it has moved, or changes stand in the way: then nothing has changed.
   */
  advance(tree: TreeWork, to: { branch: string; commit: string }, signal: AbortSignal): Promise<void>;
  /**
   * Keeps what is in no commit as one that only `refs/atrium/wip` of the mirror has: all but what is ignored. The tree
   * stays as it is. `saved` is the one that was saved last, if any.
   */
  keepUncommitted(tree: TreeWork, saved: string | undefined, signal: AbortSignal): Promise<Uncommitted>;
  /**
   * What the mirror lacks, given what it has, with the moves of refs that belong to it. `uncommitted` is what
   * `keepUncommitted` has made; without it, that stays as it is saved. 422 `GIT_TREE_DAMAGED` where the tree has
   * lost refs that nobody deleted.
   */
  bundleOut(
    tree: TreeWork,
    mirror: MirrorState,
    signal: AbortSignal,
    uncommitted?: Uncommitted,
  ): Promise<{ bundle: Readable | undefined; refs: RefUpdate[]; head: string }>;
  /** Removes the tree with all that is in it, if it is there. */
  remove(tree: TreeRef, signal: AbortSignal): Promise<void>;
  /** Removes what `bundleOut` has left for the reader. */
  settle(tree: TreeWork): Promise<void>;
}
