import type { Readable } from 'node:stream';
import type { GitPerson, MadeBundle, MirrorState, RefUpdate, RepositoryRef } from './types.ts';

/** A working tree on a computer, which may be asleep. */
export interface TreeRef extends RepositoryRef {
  computerId: string;
  /** A path below the computer's home. */
  path: string;
}

/** A change of a tree. Changes with the same `workId` are made once. */
export interface TreeWork extends TreeRef {
  workId: string;
}

/** The output of `git status --porcelain=v2`. */
export interface GitStatus {
  /** Null if HEAD is detached. */
  branch: string | null;
  /** Null before the first commit. */
  commit: string | null;
  upstream: string | null;
  ahead: number;
  behind: number;
  /** An operation that was begun, and neither finished nor aborted. */
  unfinished: 'merge' | 'rebase' | 'cherryPick' | 'revert' | 'patches' | null;
  changes: GitChange[];
  /** Whether there are more changes than are listed. */
  truncated: boolean;
}

export interface GitChange {
  path: string;
  /** The source of a rename or a copy. */
  oldPath: string | null;
  /** The change in the index, and in the working tree; null means unchanged. */
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
  /** Long messages are cut. */
  message: string;
}

export interface GitBranch {
  /** A short name: `main`, or `origin/main` for a branch of the remote. */
  name: string;
  commit: string;
  isRemote: boolean;
  isCurrent: boolean;
  upstream: string | null;
}

/** The uncommitted work of a working tree. */
export interface Uncommitted {
  /** The commit that keeps it; undefined if there is none. */
  commit: string | undefined;
  /** Describes what could not be kept; undefined if all was. */
  left: string | undefined;
}

export interface GitDiff {
  /** In git's unified format. */
  text: string;
  truncated: boolean;
}

/** Compares two commits or branches, or `from` with the working tree, or, if `staged`, with the index. */
export interface DiffRange {
  from?: string | undefined;
  to?: string | undefined;
  staged?: boolean | undefined;
  paths?: readonly string[] | undefined;
}

/** Git in a computer's sandbox. Reads change nothing and may run at any time. A workflow orders the writes. */
export interface GitTrees {
  status(tree: TreeRef, signal: AbortSignal): Promise<GitStatus>;
  log(
    tree: TreeRef,
    page: { from?: string | undefined; after?: string | undefined; limit: number; path?: string | undefined },
    signal: AbortSignal,
  ): Promise<{ commits: GitCommit[]; next: string | null }>;
  branches(tree: TreeRef, signal: AbortSignal): Promise<GitBranch[]>;
  diff(tree: TreeRef, range: DiffRange, signal: AbortSignal): Promise<GitDiff>;
  /** The ids of a commit's objects that a partial clone lacks; undefined if the tree does not know the commit. */
  lacking(tree: TreeRef, commit: string, signal: AbortSignal): Promise<string[] | undefined>;

  /** Whether the tree exists. */
  isFilled(tree: TreeRef, signal: AbortSignal): Promise<boolean>;
  /**
   * Makes the tree, which appears in one step. An existing tree stays as it is. `url` becomes its `origin`. If the
   * state has a ref `refs/atrium/wip`, the uncommitted work in it is restored.
   */
  fill(
    tree: TreeWork,
    bundle: MadeBundle | null,
    state: MirrorState,
    origin: { url: string | null },
    signal: AbortSignal,
  ): Promise<void>;
  /** The ids of its branches and tags. */
  tips(tree: TreeRef, signal: AbortSignal): Promise<string[]>;
  /**
   * Brings what the mirror has fetched: objects, `refs/remotes/origin/*`, and tags that the tree lacks. The branch that
   * was `pushed` follows the remote's branch from now on, unless it follows another.
   */
  update(
    tree: TreeWork,
    bundle: MadeBundle | null,
    state: MirrorState,
    signal: AbortSignal,
    pushed?: string,
  ): Promise<void>;
  /** Commits these paths, or everything. 409 `GIT_NOTHING_TO_COMMIT`, or `GIT_CONFLICT` if a merge is unresolved. */
  commit(
    tree: TreeWork,
    commit: { message: string; author: GitPerson | undefined; at: Date; paths?: readonly string[] | undefined },
    signal: AbortSignal,
  ): Promise<{ id: string; output: string }>;
  /** `output` is git’s own words; it is empty for a branch that is not checked out. 409 `GIT_BRANCH_EXISTS`. */
  branch(
    tree: TreeWork,
    branch: { name: string; from?: string | undefined; checkout: boolean },
    signal: AbortSignal,
  ): Promise<{ output: string }>;
  checkout(tree: TreeWork, to: { branch: string }, signal: AbortSignal): Promise<{ output: string }>;
  /**
   * Fast-forwards the current branch, or merges a ref into it. 409 `GIT_CONFLICT` after a conflict, and during an
   * unfinished merge, rebase, cherry-pick or revert. Both leave the tree as it was.
   */
  merge(
    tree: TreeWork,
    merge: { ref: string; author: GitPerson | undefined; at: Date; fastForwardOnly: boolean },
    signal: AbortSignal,
  ): Promise<{ output: string }>;
  /**
   * Fast-forwards a branch to a commit, with its files if it is checked out. 409 `GIT_CONFLICT` if the branch has moved
   * or changes are in the way: then nothing has changed.
   */
  advance(tree: TreeWork, to: { branch: string; commit: string }, signal: AbortSignal): Promise<void>;
  /**
   * Keeps uncommitted work, except ignored files, as a commit for the mirror's `refs/atrium/wip`. The tree stays as it
   * is. `saved` is the commit that was saved last, if any.
   */
  keepUncommitted(tree: TreeWork, saved: string | undefined, signal: AbortSignal): Promise<Uncommitted>;
  /**
   * Bundles the objects that the mirror lacks, with the moves of refs. `uncommitted` comes from `keepUncommitted`;
   * without it, the saved uncommitted work stays. 422 `GIT_TREE_DAMAGED` if the tree has lost refs that no user
   * deleted.
   */
  bundleOut(
    tree: TreeWork,
    mirror: MirrorState,
    signal: AbortSignal,
    uncommitted?: Uncommitted,
  ): Promise<{ bundle: Readable | undefined; refs: RefUpdate[]; head: string }>;
  /** Removes the tree with everything in it, if it is there. */
  remove(tree: TreeRef, signal: AbortSignal): Promise<void>;
  /** Removes the files that `bundleOut` has left for its reader. */
  settle(tree: TreeWork): Promise<void>;
}
