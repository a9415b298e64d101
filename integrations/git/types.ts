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

/** A saved state of a mirror: its number grows with each change, and when its bundles are put together. */
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

/** Who has made a commit. */
export interface GitPerson {
  name: string;
  email: string;
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
   * Of a partial clone: brings the files of a commit, saves them, and bundles those that a tree lacks, by their ids. Null
   * where that is nothing, and for other clones, which have all files.
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
   * One that replaces all others may take their room: the quota counts what stays. Disposing of it removes what has not
   * been saved by then; of a process that is killed, a sweep does.
   */
  plan(ref: RepositoryRef, bundle: StoredBundle, how: { replacesAll: boolean }): Promise<AsyncDisposable>;
  /** How many more bytes the space may have. */
  room(ref: RepositoryRef): Promise<number>;
  /**
   * Compare and set: `next.version` becomes current if `next.version - 1` is (0 before the first), else false. `bundle`
   * is null where only refs have moved. With `replacesAll` it takes the place of the whole chain, whose objects may go.
   */
  save(
    ref: RepositoryRef,
    next: MirrorState & { bundle: (StoredBundle & { sha256: Buffer }) | null; replacesAll: boolean },
  ): Promise<boolean>;
}
