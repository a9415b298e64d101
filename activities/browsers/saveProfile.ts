import { ProfileHome } from '../../integrations/browsers/home/profileHome.ts';
import { profileFolder } from '../../models/browsers/folders.ts';
import { endBrowser, keepSave } from '../../models/browsers/saves.ts';
import type { BrowserSession } from '../../models/browsers/session.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import type { BrowserDeps } from './deps.ts';

/**
 * Saves the profile of a session whose Chromium has ended, and ends the session with that. The save before it is there
 * until this one is complete. What is killed begins anew, and what it has sent to the store is removed.
 */
export async function saveProfile(deps: BrowserDeps, session: BrowserSession, signal: AbortSignal): Promise<void> {
  const { config, database, liveComputers, logger, sealedProfiles, storage } = deps;
  const { id, spaceId, profileId, number } = session;
  if (profileId === null || !session.wasStarted) return endBrowser(database, session, null);
  // Nobody waits for a host that may never come back. If it does, the home has what was not saved.
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
      logger.debug({ err: error, sessionId: id }, 'What packing a profile has left goes with the next one.');
    });
  }
}

/** Sealing adds little to what is packed. */
function mostSealed({ config }: Pick<BrowserDeps, 'config'>): number {
  return config.browsers.maxProfileBytes * 1.01 + 65_536;
}
