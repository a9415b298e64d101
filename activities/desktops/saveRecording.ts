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
import type { failuresOf } from '../failures.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DesktopDeps } from './index.ts';

const contentType = 'video/mp4';

/**
 * Puts a recording's file into the drive. Of several attempts, one succeeds. An error that does not pass becomes the
 * recording's failure, and its file stays on the computer.
 */
export function createSaveRecording(
  { config, database, identity, liveComputers, storage }: DesktopDeps,
  failureOf: ReturnType<typeof failuresOf>,
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
      if (code === undefined) throw failureOf(error, 'A recording could not be saved yet.', { recordingId });
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
    // A program on the computer may have replaced the file.
    if (file.content.contentType !== contentType) {
      throw new DomainError('unprocessable', 'RECORDING_DAMAGED', 'The recorded file is no longer a video.');
    }
    await session.place([{ target, file }], async (tx, [placed]) => {
      const itemId = placed?.item.id ?? '';
      if (await keepRecording(tx, id, { itemId, size: file.content.size, durationMs })) return;
      // Another attempt was faster, or the recording was thrown away. This attempt's file is removed.
      throw new DomainError('conflict', settled, 'This file is no longer wanted.');
    });
  }

  /** The recording may be days old, so its user's rights are checked again. */
  async function requireStanding({ spaceId, askedBy: userId, apiKeyId }: DesktopRecording): Promise<void> {
    const { role, keyHolds } = await standingOf(identity, { spaceId, userId, apiKeyId });
    if (role !== undefined && isAtLeast(role, 'editor') && keyHolds) return;
    throw new DomainError(
      'forbidden',
      'RECORDING_FORBIDDEN',
      'The user who asked for this recording may no longer save it.',
    );
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
/** Another attempt would get the same refusal. */
const refusals: readonly DomainErrorKind[] = ['invalid', 'forbidden', 'notFound', 'tooLarge', 'unprocessable'];
/** The computer was deleted, or its file was removed. */
const lost = ['NOT_FOUND', 'FILE_NOT_FOUND', 'NOT_A_FILE'];
const unfit = ['NOT_A_FOLDER', 'TOO_DEEP', 'NAME_TAKEN'];

/** The recording’s failure; undefined for an error that passes. */
function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof DomainError)) return undefined;
  if (lost.includes(error.code)) return 'RECORDING_LOST';
  if (unfit.includes(error.code)) return 'FOLDER_UNFIT';
  return refusals.includes(error.kind) ? error.code : undefined;
}
