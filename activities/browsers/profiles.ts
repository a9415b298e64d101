import { DomainError } from '../../base/errors.ts';
import { ProfileHome } from '../../integrations/browsers/home/profileHome.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import { profileFolder } from '../../models/browsers/folders.ts';
import { findProfile } from '../../models/browsers/profile.ts';
import { endBrowser, keepSave } from '../../models/browsers/saves.ts';
import type { BrowserSession } from '../../models/browsers/session.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import type { BrowserDeps } from './index.ts';

/**
 * Puts the profile of a session into its computer's home. If the home has no profile, or an older one, it gets the
 * saved one. Throws 422 `PROFILE_NOT_OPENED` when the saved profile does not open.
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
  // An earlier attempt has opened it for this session, whose Chromium may have begun to write to it.
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

/** A damaged save stays damaged, so another attempt cannot help. */
function isBroken(error: unknown): boolean {
  const codes = ['PROFILE_BROKEN', 'CONTENT_DAMAGED', 'CONTENT_MISSING'];
  return error instanceof DomainError && codes.includes(error.code);
}

function notOpened(cause?: unknown): DomainError {
  const detail = 'The saved profile is damaged and cannot be opened.';
  return new DomainError('unprocessable', 'PROFILE_NOT_OPENED', detail, { cause });
}

/**
 * Saves the profile of a session whose Chromium has ended, and ends the session. The earlier save stays until this one
 * is complete. A killed attempt begins again, and its upload is removed from the store.
 */
export async function saveProfile(deps: BrowserDeps, session: BrowserSession, signal: AbortSignal): Promise<void> {
  const { config, database, liveComputers, logger, sealedProfiles, storage } = deps;
  const { id, spaceId, profileId, number } = session;
  if (profileId === null || !session.wasStarted) return endBrowser(database, session, null);
  // A lost host may never come back. If it does, the computer's home still has the profile.
  if (session.endCode === 'HOST_LOST') return endBrowser(database, session, 'HOST_LOST');
  const home = new ProfileHome(await liveComputers.work(session), profileFolder(session));
  const packed = await home.pack(config.browsers.maxProfileBytes, signal);
  if (packed === undefined) return endBrowser(database, session, 'PROFILE_MISSING');
  try {
    const { quotaBytes } = config.drive;
    await using arriving = await beginObject({ database, store: storage, quotaBytes }, spaceId);
    const { objectKey, reserve } = arriving;
    const sealed = sealedProfiles.seal({ spaceId, profileId, number }, packed.body);
    const { size, sha256 } = await storage.write(objectKey, sealed, {
      fileName: 'profile',
      maxBytes: mostSealed(deps),
      reserve,
    });
    signal.throwIfAborted();
    await keepSave(database, session, { objectKey, sizeBytes: size, sha256 });
  } finally {
    packed.body.destroy();
    await home.settle().catch((error: unknown) => {
      logger.debug({ err: error, sessionId: id }, 'The archive of a saved profile is removed with the next one.');
    });
  }
}

/** The limit after sealing, which adds a little to the archive. */
function mostSealed({ config }: Pick<BrowserDeps, 'config'>): number {
  return config.browsers.maxProfileBytes * 1.01 + 65_536;
}
