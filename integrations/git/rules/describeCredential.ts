import type { DomainError } from '../../../base/errors.ts';
import { type GitFailure, gitError } from './failures.ts';

/** What the remote was told of who asks: it may have asked for nothing, or for another address. */
export type ShownCredential = 'none' | 'kept' | 'shown';

type Telling = Readonly<Partial<Record<GitFailure, Partial<Record<ShownCredential, string>>>>>;

const remedy =
  'Add one for its server (POST …/git/credentials), and name it as `credentialId` in PATCH …/git/{itemId}, or in retry-clone where the clone has failed.';

const sentences: Telling = {
  GIT_AUTHENTICATION_FAILED: {
    none: `The remote wants a credential for this, and the repository has none. ${remedy}`,
    shown: 'The remote refuses the repository’s credential, or does not let it do this.',
  },
  GIT_REMOTE_NOT_FOUND: {
    none: 'The remote has no such repository, or shows it only to those with a credential, and this one has none.',
    kept: 'The remote has no such repository. It has not asked for the credential.',
    shown: 'The remote has no such repository, or not for this credential.',
  },
};

/** Why a remote refuses: git does not say whether the remote has been shown a credential. */
export function describeCredential(error: DomainError, shown: ShownCredential): DomainError {
  const sentence = sentences[error.code as GitFailure]?.[shown];
  return sentence === undefined ? error : gitError(error.code as GitFailure, sentence, { cause: error });
}
