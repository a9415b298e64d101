import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { openStream, sealStream } from '../../crypto/sealedStream.ts';

/** Which save of which profile. */
export interface SavedProfile {
  spaceId: string;
  profileId: string;
  number: number;
}

export type SealedProfiles = ReturnType<typeof createSealedProfiles>;

/** Profiles as the object store has them: they hold logins, so they are sealed by the space's data key. */
export function createSealedProfiles(envelope: Envelope) {
  const placeOf = ({ spaceId, profileId, number }: SavedProfile) => ({
    scope: spaceId,
    context: `browser_profiles/${profileId}/${number}`,
  });
  return {
    seal: (saved: SavedProfile, bytes: AsyncIterable<Buffer>) => sealStream(envelope, placeOf(saved), bytes),
    /** Throws 422 `PROFILE_BROKEN` where it is not as it was sealed. */
    async *open(saved: SavedProfile, sealed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      try {
        yield* openStream(envelope, placeOf(saved), sealed);
      } catch (error) {
        if (!(error instanceof DecryptionError)) throw error;
        throw new DomainError('unprocessable', 'PROFILE_BROKEN', 'The saved profile does not open.', { cause: error });
      }
    },
  };
}
