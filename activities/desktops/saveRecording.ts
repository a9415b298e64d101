import { DomainError, type DomainErrorKind } from '../../base/errors.ts';
import { Recorder } from '../../integrations/desktops/recording/recorder.ts';
import { type DesktopRecording, findRecording } from '../../models/desktops/recording.ts';
import { failRecording, keepRecording } from '../../models/desktops/recordingSteps.ts';
import { openLiving } from '../../models/drive/changes.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { parsePath } from '../../models/drive/names.ts';
import type { FileTarget } from '../../models/drive/placeFile.ts';
import { UploadSession } from '../../models/drive/uploadSession.ts';
import { standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DesktopDeps } from './deps.ts';

const contentType = 'video/mp4';

/**
 * Puts a recording's file into the drive: of all that try, in the end one does. What cannot be mended by waiting is the
 * recording's failure; its file stays on the computer then.
 */
export function createSaveRecording(
  { config, database, identity, liveComputers, storage }: DesktopDeps,
  failureOf: (error: unknown, message: string, recordingId: string) => unknown,
) {
  return async function saveRecording({ recordingId }: { recordingId: string }): Promise<void> {
    using heartbeat = keepAlive();
    const recording = await findRecording(database, recordingId);
    if (recording?.status !== 'saving') return;
    try {
      await save(recording, heartbeat.cancelled);
    } catch (error) {
      if (error instanceof DomainError && error.code === settled) return;
      const code = refusalOf(error);
      if (code === undefined) throw failureOf(error, 'A recording could not be saved yet.', recordingId);
      await failRecording(database, recordingId, code);
    }
  };

  async function save(recording: DesktopRecording, signal: AbortSignal): Promise<void> {
    const { id, spaceId, name } = recording;
    const recorder = new Recorder(await liveComputers.work(recording), recording);
    const { durationMs } = await recorder.finish(signal);
    await requireStanding(recording);
    const target = await targetOf(recording);
    const { body } = await recorder.read(signal);
    await using session = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
    const file = await session.receive(body as AsyncIterable<Buffer>, name).finally(() => body.destroy());
    // Somebody may have put anything in its place.
    if (file.content.contentType !== contentType) {
      throw new DomainError('unprocessable', 'RECORDING_DAMAGED', 'The file is not a video any more.');
    }
    await session.place([{ target, file }], async (tx, [placed]) => {
      const itemId = placed?.item.id ?? '';
      if (await keepRecording(tx, id, { itemId, size: file.content.size, durationMs })) return;
      // Another attempt, taken for dead, was faster, or it was thrown away: this one's file goes.
      throw new DomainError('conflict', settled, 'Nobody waits for this file any more.');
    });
  }

  /** It may have lain on a computer for days. */
  async function requireStanding({ spaceId, askedBy: userId, apiKeyId }: DesktopRecording): Promise<void> {
    const { role, keyHolds } = await standingOf(identity, { spaceId, userId, apiKeyId });
    if (role !== undefined && isAtLeast(role, 'editor') && keyHolds) return;
    throw new DomainError('forbidden', 'RECORDING_FORBIDDEN', 'Whoever has started it may not do this any more.');
  }

  async function targetOf({ spaceId, askedBy, name, folderId, folderPath }: DesktopRecording): Promise<FileTarget> {
    const names = folderId === null ? parsePath(folderPath ?? '') : await namesOf(spaceId, folderId);
    const where = { spaceId, userId: askedBy, containerId: driveContainerId };
    return { ...where, names, pathOf: 'folder', fileName: name, onConflict: 'rename' };
  }

  async function namesOf(spaceId: string, folderId: string): Promise<string[]> {
    const found = await openLiving(database, spaceId, folderId).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.kind !== 'notFound') throw error;
    });
    if (found?.place.containerId === driveContainerId) return found.place.names;
    throw new DomainError('unprocessable', 'FOLDER_GONE', 'The folder is gone.');
  }
}

const settled = 'RECORDING_SETTLED';
/** Refusals that another attempt would meet as well. */
const refusals: readonly DomainErrorKind[] = ['invalid', 'forbidden', 'notFound', 'tooLarge', 'unprocessable'];
/** Of a computer that was deleted, and of a file that somebody has removed. */
const lost = ['NOT_FOUND', 'FILE_NOT_FOUND', 'NOT_A_FILE'];
const unfit = ['NOT_A_FOLDER', 'TOO_DEEP', 'NAME_TAKEN'];

/** The recording’s failure; undefined for what is better later. */
function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof DomainError)) return undefined;
  if (lost.includes(error.code)) return 'RECORDING_LOST';
  if (unfit.includes(error.code)) return 'FOLDER_UNFIT';
  return refusals.includes(error.kind) ? error.code : undefined;
}
