import { DomainError } from '../../base/errors.ts';
import { ProfileHome } from '../../integrations/browsers/home/profileHome.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import { profileFolder } from '../../models/browsers/folders.ts';
import { findProfile } from '../../models/browsers/profile.ts';
import type { BrowserSession } from '../../models/browsers/session.ts';
import type { BrowserDeps } from './deps.ts';

/**
 * Has the profile of a session in its computer's home: as it was left there, or as it was saved where the home has none,
 * or an older one. Throws 422 `PROFILE_NOT_OPENED` where what was saved does not open.
 */
export async function openProfile(
  { database, storage, sealedProfiles }: Pick<BrowserDeps, 'database' | 'storage' | 'sealedProfiles'>,
  session: BrowserSession,
  client: HostClient,
  signal: AbortSignal,
): Promise<void> {
  const { profileId, number, spaceId } = session;
  if (profileId === null) return;
  const profile = await findProfile(database, profileId);
  if (profile === undefined) throw notOpened();
  const home = new ProfileHome(client, profileFolder(session));
  const left = await home.number();
  // It was opened for this session already: its Chromium may have begun to write in it.
  if (left === number) return;
  const { saved, objectKey } = profile;
  if (objectKey !== null && (left < saved || left > number)) {
    try {
      const sealed = await storage.read(objectKey);
      await home.fill(sealedProfiles.open({ spaceId, profileId, number: saved }, sealed), saved, signal);
    } catch (error) {
      throw isBroken(error) ? notOpened(error) : error;
    }
  }
  await home.setNumber(number);
}

/** What is not as it was written never will be. */
function isBroken(error: unknown): boolean {
  const codes = ['PROFILE_BROKEN', 'CONTENT_DAMAGED', 'CONTENT_MISSING'];
  return error instanceof DomainError && codes.includes(error.code);
}

function notOpened(cause?: unknown): DomainError {
  const detail = 'What was saved of this profile does not open.';
  return new DomainError('unprocessable', 'PROFILE_NOT_OPENED', detail, { cause });
}
