import { DomainError, type DomainErrorKind, errorsOf } from '../../../base/errors.ts';

/** The failures of git, by their stable codes. */
export const gitFailures = {
  /** The URL is malformed, has another scheme, or contains a user. */
  GIT_URL_REFUSED: 'unprocessable',
  GIT_BRANCH_NAME_REFUSED: 'unprocessable',
  /** There is no such branch, tag or commit. */
  GIT_REF_UNKNOWN: 'unprocessable',
  /** The remote does not have the branch that is to be pulled. */
  GIT_NO_REMOTE_BRANCH: 'conflict',
  /** The remote has no such repository, or not for this credential. */
  GIT_REMOTE_NOT_FOUND: 'unprocessable',
  GIT_AUTHENTICATION_FAILED: 'unprocessable',
  /** The remote answers and refuses: a branch rule, a hook, or a missing right. */
  GIT_REMOTE_REFUSED: 'unprocessable',
  /** The egress lists or the egress guard refuse the address. */
  GIT_REMOTE_FORBIDDEN: 'unprocessable',
  /** The remote was not reached, broke off, or does not speak git. A retry may help. */
  GIT_REMOTE_FAILED: 'upstream',
  /** The remote is silent or too slow. A retry may help. */
  GIT_REMOTE_TOO_SLOW: 'upstreamTimeout',
  GIT_TOO_LARGE: 'unprocessable',
  /** Fsck refuses objects that are dangerous to check out. */
  GIT_OBJECTS_REFUSED: 'unprocessable',
  /** The remote or the mirror has moved in the meantime. */
  GIT_CONFLICT: 'conflict',
  /** The caller lost the right to the change while the change was waiting. */
  GIT_ORDER_FORBIDDEN: 'forbidden',
  GIT_BRANCH_EXISTS: 'conflict',
  GIT_NOTHING_TO_COMMIT: 'conflict',
  /** The repository has no working tree on its computer. */
  GIT_TREE_MISSING: 'conflict',
  /** A partial clone lacks objects that are to be shown, merged or checked out. */
  GIT_OBJECTS_MISSING: 'conflict',
  /** The files are on another computer than the requested one. */
  GIT_TREE_ELSEWHERE: 'conflict',
  /** Another folder is in the place of the working tree. */
  GIT_TREE_OCCUPIED: 'conflict',
  /** Another git works in the tree, for example at a terminal. */
  GIT_TREE_BUSY: 'conflict',
  /** The computer's disk is full. */
  GIT_TREE_FULL: 'conflict',
  /** Git on the computer refuses. `detail` has git's own message. */
  GIT_TREE_FAILED: 'unprocessable',
  /** The tree lacks saved branches or tags that no user deleted. */
  GIT_TREE_DAMAGED: 'unprocessable',
  /** The draft was discarded in the meantime. */
  GIT_DRAFT_GONE: 'conflict',
  /** A draft has uncommitted changes, which a merge would leave out. */
  GIT_DRAFT_UNCOMMITTED: 'conflict',
  /** A draft is saved except for what `detail` names. */
  GIT_DRAFT_INCOMPLETE: 'unprocessable',
  GIT_TREE_TOO_SLOW: 'upstreamTimeout',
  /** Git failed on our side. */
  GIT_FAILED: 'unavailable',
  /** This machine has no room for the repository, even after evicting others. */
  GIT_DISK_FULL: 'unavailable',
  GIT_NOT_INSTALLED: 'unavailable',
} as const satisfies Record<string, DomainErrorKind>;

export type GitFailure = keyof typeof gitFailures;

/** Failures that a retry may overcome. */
const passing: readonly string[] = ['GIT_REMOTE_FAILED', 'GIT_REMOTE_TOO_SLOW', 'GIT_FAILED'] satisfies GitFailure[];

export const gitError = errorsOf(gitFailures);

export function treeMissing(): DomainError {
  const detail = 'The repository’s files are not on its computer. They come there when it is checked out.';
  return gitError('GIT_TREE_MISSING', detail);
}

export function treeGone(cause: unknown): DomainError {
  const detail =
    'The computer with the repository’s files was deleted. They come to another one when it is checked out.';
  return gitError('GIT_TREE_MISSING', detail, { cause });
}

export function objectsMissing(): DomainError {
  const detail = 'This needs versions of files that the partial clone has left with its remote.';
  return gitError('GIT_OBJECTS_MISSING', detail);
}

export function tooManyRefs(maxRefs: number): DomainError {
  return gitError('GIT_TOO_LARGE', `The repository has more than ${maxRefs} branches and tags.`);
}

export function draftMissing(): DomainError {
  const detail =
    'The draft’s files are not on its computer. A commit brings them back, as does the next save by itself.';
  return gitError('GIT_TREE_MISSING', detail);
}

/** What to throw, by `gitError`, where the remote is no git server. */
export const noGitServer = [
  'GIT_REMOTE_FAILED',
  'The remote does not answer as a git server does.',
] as const satisfies [GitFailure, string];

/** Whether Atrium should retry by itself. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof DomainError)) return true;
  // A retry would send everything again, and fail again.
  if (error.code === ('GIT_DISK_FULL' satisfies GitFailure)) return false;
  return passing.includes(error.code) || error.kind === 'unavailable';
}
