import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { openStream, sealStream } from '../../crypto/sealedStream.ts';

/** One save of a profile. */
export interface SavedProfile {
  spaceId: string;
  profileId: string;
  number: number;
}

export type SealedProfiles = ReturnType<typeof createSealedProfiles>;

/** Saved profiles have logins in them, so the space's data key seals them for the object store. */
export function createSealedProfiles(envelope: Envelope) {
  const placeOf = ({ spaceId, profileId, number }: SavedProfile) => ({
    scope: spaceId,
    context: `browser_profiles/${profileId}/${number}`,
  });
  return {
    seal: (saved: SavedProfile, bytes: AsyncIterable<Buffer>) => sealStream(envelope, placeOf(saved), bytes),
    /** Throws 422 `PROFILE_BROKEN` when the bytes were changed. */
    async *open(saved: SavedProfile, sealed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      try {
        yield* openStream(envelope, placeOf(saved), sealed);
      } catch (error) {
        if (!(error instanceof DecryptionError)) throw error;
        throw new DomainError('unprocessable', 'PROFILE_BROKEN', 'The saved profile is damaged and cannot be opened.', {
          cause: error,
        });
      }
    },
  };
}
