import { UniqueConstraintError } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type DownloadedFile, DownloadsHome, keyOf } from '../../integrations/browsers/home/downloadsHome.ts';
import { downloadTarget, isDownloaded, noteDownload, noteDownloadFault } from '../../models/browsers/downloads.ts';
import { downloadsFolder } from '../../models/browsers/folders.ts';
import { type BrowserSession, findBrowser } from '../../models/browsers/session.ts';
import { isAway } from '../../models/database/unavailable.ts';
import { UploadSession } from '../../models/drive/uploadSession.ts';
import type { BrowserDeps } from './index.ts';

/**
 * Moves a session's downloads from the computer into the drive, each file once. A file that the drive refuses stays on
 * the computer, and the session says why. Throws temporary errors, so that Temporal retries the activity.
 */
export async function collectDownloads(deps: BrowserDeps, session: BrowserSession, signal: AbortSignal): Promise<void> {
  const { config, database, liveComputers, logger } = deps;
  if (!session.wasStarted) return;
  if (session.endCode === 'HOST_LOST') return noteDownloadFault(database, session, 'HOST_LOST');
  const home = new DownloadsHome(await liveComputers.work(session), downloadsFolder(session));
  let code: string | null = null;
  for (let isAll = false; !isAll && code === null; ) {
    const found = await home.finished();
    isAll = found.isAll;
    let taken = 0;
    for (const file of found.files) {
      signal.throwIfAborted();
      const { downloadedFiles = 0 } = (await findBrowser(database, session.id)) ?? {};
      try {
        const isFull = downloadedFiles >= config.browsers.maxDownloads;
        if (await collect(deps, { session, home, file, isFull }, signal)) taken++;
      } catch (error) {
        if (!(error instanceof DomainError) || passes(error)) throw error;
        logger.info({ err: error, sessionId: session.id }, 'A download could not be put into the drive.');
        code = error.code;
      }
    }
    // The list shows more files when these are gone. If none are gone, the session must report that files are left.
    if (!isAll && taken === 0) code ??= 'TOO_MANY_DOWNLOADS';
  }
  if (code !== session.downloadCode) await noteDownloadFault(database, session, code);
}

interface Collected {
  session: BrowserSession;
  home: DownloadsHome;
  file: DownloadedFile;
  /** Whether the session has moved as many files as it may. */
  isFull: boolean;
}

/** Moves one file. Returns whether it has left the computer. */
async function collect(
  { config, database, storage }: BrowserDeps,
  { session, home, file, isFull }: Collected,
  signal: AbortSignal,
): Promise<boolean> {
  const content = await home.open(file, signal);
  if (content === undefined) return false;
  const key = keyOf(file, content);
  const isThere = await isDownloaded(database, session.id, key);
  if (isThere || isFull) content.body.destroy();
  if (isFull && !isThere) {
    const detail = `The session has more downloads than the maximum of ${config.browsers.maxDownloads}. The others are not saved to the drive.`;
    throw new DomainError('unprocessable', 'TOO_MANY_DOWNLOADS', detail);
  }
  if (!isThere) {
    const target = downloadTarget(session, file.name);
    await using upload = new UploadSession({ database, store: storage, limits: config.drive }, session.spaceId);
    try {
      const arrived = await upload.receive(content.body, target.fileName);
      const sizeBytes = arrived.content.size;
      await upload.place([{ target, file: arrived }], (tx) => noteDownload(tx, session, { key, sizeBytes }));
    } catch (error) {
      // Another worker has put this file into the drive.
      if (!(error instanceof UniqueConstraintError)) throw error;
    } finally {
      content.body.destroy();
    }
  }
  // If a program is still writing the file, it is another file now. It stays, and is moved later.
  if (!(await home.isStill(file, content, signal))) return false;
  await home.remove(file);
  return true;
}

function passes(error: DomainError): boolean {
  const isChanging = error.code === 'COMPUTER_NOT_RUNNING';
  return (
    isChanging || isAway(error) || ['unavailable', 'upstream', 'upstreamTimeout', 'rateLimited'].includes(error.kind)
  );
}
