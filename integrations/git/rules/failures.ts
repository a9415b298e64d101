import { DomainError, type DomainErrorKind, errorsOf } from '../../../base/errors.ts';

/** What can go wrong with git, by its stable code. */
export const gitFailures = {
  /** The URL is of another scheme, has a user in it, or is not one. */
  GIT_URL_REFUSED: 'unprocessable',
  GIT_BRANCH_NAME_REFUSED: 'unprocessable',
  /** There is no such branch, tag or commit. */
  GIT_REF_UNKNOWN: 'unprocessable',
  /** Pulled was a branch that the remote does not have. */
  GIT_NO_REMOTE_BRANCH: 'conflict',
  /** The remote says that there is no such repository, or not for these credentials. */
  GIT_REMOTE_NOT_FOUND: 'unprocessable',
  GIT_AUTHENTICATION_FAILED: 'unprocessable',
  /** The remote answers, and will not do it: a rule of a branch, a hook, a right that is missing. */
  GIT_REMOTE_REFUSED: 'unprocessable',
  /** The egress lists or the guard keep us from going there. */
  GIT_REMOTE_FORBIDDEN: 'unprocessable',
  /** Not reached, ended in the middle, or answers what is not git. Worth trying again. */
  GIT_REMOTE_FAILED: 'upstream',
  /** Silent or too slow. Worth trying again. */
  GIT_REMOTE_TOO_SLOW: 'upstreamTimeout',
  GIT_TOO_LARGE: 'unprocessable',
  /** Objects that fsck refuses: they would harm who checks them out. */
  GIT_OBJECTS_REFUSED: 'unprocessable',
  /** The remote or the mirror has moved in the meantime. */
  GIT_CONFLICT: 'conflict',
  /** Who has asked for it may not do that any more, now that it is its turn. */
  GIT_ORDER_FORBIDDEN: 'forbidden',
  GIT_BRANCH_EXISTS: 'conflict',
  GIT_NOTHING_TO_COMMIT: 'conflict',
  /** The repository has no working tree on its computer yet, or not any more. */
  GIT_TREE_MISSING: 'conflict',
  /** A partial clone has not brought what is to be shown, merged or checked out. */
  GIT_OBJECTS_MISSING: 'conflict',
  /** Its files are on another computer than the one that they are wanted on. */
  GIT_TREE_ELSEWHERE: 'conflict',
  /** Something else is where the working tree is to be. */
  GIT_TREE_OCCUPIED: 'conflict',
  /** Another git works in it, such as that of a person at a terminal. */
  GIT_TREE_BUSY: 'conflict',
  /** The computer's disk is full. */
  GIT_TREE_FULL: 'conflict',
  /** Git on the computer refuses in words of its own. */
  GIT_TREE_FAILED: 'unprocessable',
  /** It has lost branches or tags that are saved, and nobody deleted them. */
  GIT_TREE_DAMAGED: 'unprocessable',
  /** It was discarded in the meantime. */
  GIT_DRAFT_GONE: 'conflict',
  /** A draft has changes that are in no commit, so merging it would leave them out. */
  GIT_DRAFT_UNCOMMITTED: 'conflict',
  /** Of a draft, all is saved but what `detail` says. */
  GIT_DRAFT_INCOMPLETE: 'unprocessable',
  GIT_TREE_TOO_SLOW: 'upstreamTimeout',
  /** Git itself failed in a way that says nothing about the remote. */
  GIT_FAILED: 'unavailable',
  /** This machine has no room for it, and has removed what it can. */
  GIT_DISK_FULL: 'unavailable',
  GIT_NOT_INSTALLED: 'unavailable',
} as const satisfies Record<string, DomainErrorKind>;

export type GitFailure = keyof typeof gitFailures;

/** Failures that the same call may not meet again. */
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

export function tooManyRefs(maxRefs: number): DomainError {
  return gitError('GIT_TOO_LARGE', `The repository has more than ${maxRefs} branches and tags.`);
}

export function draftMissing(): DomainError {
  const detail =
    'The draft’s files are not on its computer. A commit brings them back, as does the next save by itself.';
  return gitError('GIT_TREE_MISSING', detail);
}

/** Whether to try again by ourselves. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof DomainError)) return true;
  // All of it would be sent again, to the same end.
  if (error.code === ('GIT_DISK_FULL' satisfies GitFailure)) return false;
  return passing.includes(error.code) || error.kind === 'unavailable';
}
