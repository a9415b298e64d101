import type { Readable } from 'node:stream';
import type { GitPerson, MadeBundle, MirrorState, RefUpdate, RepositoryRef } from './types.ts';

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
  /**
   * Brings what the mirror has fetched: objects, `refs/remotes/origin/*`, and tags that the tree does not have. A branch
   * that was `pushed` follows the remote's from now on, if it follows none.
   */
  update(
    tree: TreeWork,
    bundle: MadeBundle | null,
    state: MirrorState,
    signal: AbortSignal,
    pushed?: string,
  ): Promise<void>;
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
