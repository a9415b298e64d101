import type { Readable } from 'node:stream';

/**
 * Git works in two places. A *mirror* is a bare repository of ours, and the only one that talks to a remote. A *tree*
 * is a repository with a working tree on a computer, where users and agents change files. They exchange bundles only:
 * git that runs with a stranger's `.git/config` runs the stranger's programs.
 *
 * Both have the refs of a clone: `refs/heads/*` are the user's branches, `refs/remotes/origin/*` the remote's branches
 * at the last fetch, `refs/tags/*` tags. `refs/atrium/*` is what Atrium keeps: uncommitted work and drafts.
 *
 * Failures are DomainErrors with a code of `GitFailure` (rules/failures.ts). Their text never contains credentials or
 * paths of this machine.
 */

/** A repository: an item of a space's drive. */
export interface RepositoryRef {
  spaceId: string;
  itemId: string;
}

/** The user and password that git sends. For a token, the user is `x-access-token`, or any name. */
export interface GitCredential {
  username: string;
  password: string;
}

export interface RemoteSource {
  /** Normalised by `parseRemoteUrl` (rules/remoteUrl.ts): https, without user and password. */
  url: string;
  /** Called when the server asks, and only for exactly this URL. So tokens are minted only when they are needed. */
  credential?: (() => Promise<GitCredential>) | undefined;
}

/** Which blobs stay at the remote until they are needed: all of them, or those above a size. */
export type GitFilter = 'blob:none' | `blob:limit=${number}`;

export interface CloneSource extends RemoteSource {
  /** The branch to check out. By default it is the remote's default branch. */
  branch?: string | undefined;
  /** Fetch only so many commits, of that branch only. By default everything is fetched. */
  depth?: number | undefined;
  filter?: GitFilter | undefined;
}

export type GitPhase =
  | 'connecting'
  | 'counting' // the server collects objects
  | 'receiving'
  | 'resolving' // git resolves deltas and checks objects
  | 'checking' // we count files, LFS pointers and submodules
  | 'saving' // to the object store
  | 'sending'; // during a push

export interface GitProgress {
  phase: GitPhase;
  /** Progress in this phase; null if its end is unknown. */
  percent: number | null;
  /** Received or sent in this attempt. */
  bytes: number;
  objects: number;
  totalObjects: number | null;
  /** Objects that an earlier attempt has brought. */
  keptObjects: number;
}

export interface GitHooks {
  /** Called at most a few times a second, never after the call has settled. */
  onProgress?: (progress: GitProgress) => void;
  /** Ends git's processes. Objects that arrived stay for the next attempt. */
  signal: AbortSignal;
}

/** The state of all refs. Together with the objects of its bundles, it is the truth about a repository. */
export interface RefManifest {
  /** A branch such as `refs/heads/main`, which may not exist yet, or a commit id. */
  head: string;
  /** Full names of refs to object ids. */
  refs: Record<string, string>;
  /** For a shallow clone: the commits whose parents are missing. Otherwise empty. */
  shallow: string[];
  /** The filter of a partial clone. */
  filter: GitFilter | null;
}

/** A saved state of a mirror. The version grows with each change, and when bundles are merged. */
export interface MirrorState {
  version: number;
  manifest: RefManifest;
}

/** The contents of a checkout of a commit. */
export interface TreeFacts {
  files: number;
  bytes: number;
  /** Pointers of Git LFS. Their files are not fetched. */
  lfsPointers: number;
  /** The paths of at most 100 submodules, which stay empty folders. */
  submodules: string[];
}

export interface CloneResult extends MirrorState {
  /** Null if the remote has no commit. */
  defaultBranch: string | null;
  tree: TreeFacts;
}

export interface PushRef {
  /** A ref of the mirror, or null to delete `to`. */
  from: string | null;
  /** A full name at the remote: `refs/heads/…` or `refs/tags/…`. */
  to: string;
  /** Overwrites the remote's ref if it has not moved since the last fetch. */
  force?: boolean;
}

/** Moves a ref of the mirror from `from` to `to`. It may be at `to` already. Null means absent. */
export interface RefUpdate {
  name: string;
  from: string | null;
  to: string | null;
}

/** An author or committer. */
export interface GitPerson {
  name: string;
  email: string;
}

/** A merge of one branch into another, without any working tree. */
export interface MergeRequest {
  /** The branch that is merged into. It stays where it is. */
  into: string;
  /** The ref that is merged. */
  from: string;
  /** The ref that keeps the result. */
  to: string;
  /** Undefined if the user who asked is gone. */
  author: GitPerson | undefined;
  at: Date;
  message: string;
}

export interface MergeResult {
  /** The commit that has both sides. */
  commit: string;
  /** One side has all of the other, so no commit was made. */
  fastForward: boolean;
}

/**
 * A file in git's bundle format. Anybody can clone the bundle of a complete repository. For a shallow or partial one:
 * `git init`, write the manifest's `shallow` to `.git/shallow`, `git bundle unbundle`, `git update-ref --stdin`.
 * Dispose of it after reading.
 */
export interface MadeBundle extends AsyncDisposable {
  path: string;
  bytes: number;
  /** May be called more than once. */
  open(): Readable;
}

/** Git in the mirrors. Only activities use it; their workflow makes one call at a time for a repository. */
export interface GitMirrors {
  /**
   * Clones a repository and saves it. After a failure, the objects that arrived stay on this machine, and the next
   * attempt continues from them. Returns the saved state if the repository is already cloned.
   */
  clone(ref: RepositoryRef, source: CloneSource, hooks: GitHooks): Promise<CloneResult>;
  /** Updates `refs/remotes/origin/*`, and brings new tags. Existing tags are neither moved nor removed. */
  fetch(ref: RepositoryRef, source: RemoteSource, hooks: GitHooks): Promise<MirrorState>;
  /**
   * `output` is git's own words, without the URL. 409 `GIT_CONFLICT` if the remote has commits that the mirror lacks.
   */
  push(
    ref: RepositoryRef,
    source: RemoteSource,
    refs: readonly PushRef[],
    hooks: GitHooks,
  ): Promise<MirrorState & { output: string }>;
  /**
   * For a partial clone: fetches the files of a commit, saves them, and bundles the ones that a tree lacks, by their
   * ids. Null if the tree lacks none, and for other clones, which have all files.
   */
  fetchFiles(
    ref: RepositoryRef,
    source: RemoteSource,
    commit: string,
    lacking: readonly string[] | 'all',
    hooks: GitHooks,
  ): Promise<MadeBundle | null>;
  /**
   * Bundles everything that a receiver with these commits lacks; unknown commits are ignored. The bundle is null if
   * only refs are to be moved. Refs that Atrium keeps are left out, except those in `kept`.
   */
  bundleFor(
    ref: RepositoryRef,
    have: readonly string[],
    signal: AbortSignal,
    kept?: readonly string[],
  ): Promise<{ bundle: MadeBundle | null } & MirrorState>;
  /**
   * Merges or fast-forwards, and keeps the result under the ref `to`. Throws 409 `GIT_CONFLICT`, which names the files,
   * and 422 `GIT_REF_UNKNOWN`; then nothing has changed.
   */
  merge(ref: RepositoryRef, merge: MergeRequest, signal: AbortSignal): Promise<MergeResult>;
  /**
   * Takes in objects of a tree, checks them by fsck, and saves them. `bundle` is a bundle or a bare pack, and is absent
   * if only refs move. `head` moves HEAD too. The first call may make the repository.
   */
  receive(
    ref: RepositoryRef,
    change: { bundle?: Readable | undefined; refs: readonly RefUpdate[]; head?: string | undefined },
    signal: AbortSignal,
  ): Promise<MirrorState>;
  /** The saved state, read without the folder; undefined before the first save. */
  state(ref: RepositoryRef): Promise<MirrorState | undefined>;
  /** Counts a commit's tree, within the limits (422 `GIT_TOO_LARGE`), before it is checked out. */
  measure(ref: RepositoryRef, commit: string, signal: AbortSignal): Promise<TreeFacts>;
  /** Removes the folder on this machine. The caller removes the bundles. */
  remove(ref: RepositoryRef, signal: AbortSignal): Promise<void>;
  /** Tidies the folders on this machine that are not in use, and returns how many were removed. */
  sweep(sweep: MirrorSweep): Promise<number>;
}

export interface MirrorSweep {
  /** The items that are still repositories. */
  known(itemIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Called for a folder that cannot be tidied. The others are tidied anyway. */
  onFailure(itemId: string, error: unknown): void;
  signal: AbortSignal;
}

/** One object in the store. A chain of them restores a mirror. */
export interface StoredBundle {
  /** The version of the mirror after this bundle. */
  version: number;
  objectKey: string;
  bytes: number;
}

export interface SavedMirror extends MirrorState {
  /** In the order in which a restore takes them in. Empty for a repository without a commit. */
  bundles: StoredBundle[];
}

/** The rows about mirrors. They are the truth, and a mirror's folder is a cache. */
export interface MirrorRecords {
  current(ref: RepositoryRef): Promise<SavedMirror | undefined>;
  /**
   * Counts a bundle against the space's quota and notes its key before it is stored. Throws 413 `QUOTA_EXCEEDED`. A
   * bundle that replaces all others may use their room. Disposal removes the bundle unless it is saved by then; a sweep
   * does that for a killed process.
   */
  plan(ref: RepositoryRef, bundle: StoredBundle, how: { replacesAll: boolean }): Promise<AsyncDisposable>;
  /** How many more bytes the space may store. */
  room(ref: RepositoryRef): Promise<number>;
  /**
   * Makes `next` current if the current version is the one before (0 before the first), else returns false. `bundle` is
   * null if only refs have moved. With `replacesAll` it replaces the whole chain.
   */
  save(
    ref: RepositoryRef,
    next: MirrorState & { bundle: (StoredBundle & { sha256: Buffer }) | null; replacesAll: boolean },
  ): Promise<boolean>;
}
