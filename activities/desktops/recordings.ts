import { DomainError } from '../../base/errors.ts';
import { Recorder } from '../../integrations/desktops/recording/recorder.ts';
import { isOffComputer } from '../../models/computers/sessionOn.ts';
import { type DesktopRecording, findRecording } from '../../models/desktops/recording.ts';
import {
  failRecording,
  nextRecordingStep,
  noteCleared,
  noteFile,
  noteRecorderEnd,
  noteRecording,
  type RecordingStep,
} from '../../models/desktops/recordingSteps.ts';
import { endCodeOf, findDesktop } from '../../models/desktops/session.ts';
import { failuresOf } from '../failures.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DesktopDeps } from './index.ts';
import { createSaveRecording } from './saveRecording.ts';

/** Errors that another attempt cannot overcome. */
const final = ['RECORDING_UNAVAILABLE', 'RECORDING_NOT_STARTED', 'COMPUTER_NOT_RUNNING', 'NOT_FOUND'];

interface Which {
  recordingId: string;
}

/** The steps of a recording's workflow. */
export function createRecordingActivities(deps: DesktopDeps) {
  const { database, liveComputers, logger } = deps;
  const failureOf = failuresOf(logger, final);

  async function recorderOf(recording: DesktopRecording): Promise<Recorder> {
    return new Recorder(await liveComputers.running(recording), recording);
  }

  /** Notes that a recorder has ended by itself. If its computer cannot be asked now, the next look asks again. */
  async function noteEnd(recordingId: string): Promise<void> {
    const recording = await findRecording(database, recordingId);
    if (recording?.status !== 'recording') return;
    const session = await findDesktop(database, recording.sessionId);
    if (session === undefined || endCodeOf(session) !== undefined || session.computerStatus !== 'running') return;
    try {
      const end = await (await recorderOf(recording)).end();
      if (end !== undefined) await noteRecorderEnd(database, recordingId, end);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
    }
  }

  return {
    async lookAtRecording({ recordingId }: Which): Promise<RecordingStep> {
      await noteEnd(recordingId);
      return nextRecordingStep(database, recordingId);
    },

    async startRecording({ recordingId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const recording = await findRecording(database, recordingId);
      const session = recording && (await findDesktop(database, recording.sessionId));
      if (recording?.status !== 'starting' || session === undefined || isOffComputer(session)) return;
      try {
        const recorder = await recorderOf(recording);
        await noteFile(database, recordingId);
        await recorder.start(heartbeat.cancelled);
        // The next step ends a recording that was called off in the meantime.
        await noteRecording(database, recordingId);
      } catch (error) {
        throw failureOf(error, 'A recording could not be started.', { recordingId });
      }
    },

    /** Ends a recording that could not be started, and removes its files. */
    async failRecording({ recordingId, code }: Which & { code: string }): Promise<void> {
      const recording = await findRecording(database, recordingId);
      if (recording?.status !== 'starting') return;
      try {
        const recorder = await recorderOf(recording);
        await recorder.stop();
        await recorder.remove();
      } catch (error) {
        // The recorder ends by itself when its recording has reached its limit.
        logger.warn({ err: error, recordingId }, 'A recorder may still be running.');
      }
      await failRecording(database, recordingId, code);
    },

    async stopRecording({ recordingId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const recording = await findRecording(database, recordingId);
      if (recording?.status !== 'stopping' && recording?.status !== 'discarding') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        await noteRecorderEnd(database, recordingId, await (await recorderOf(recording)).stop());
      } catch (error) {
        throw failureOf(error, 'A recording could not be ended.', { recordingId });
      }
    },

    saveRecording: createSaveRecording(deps, failureOf),

    /** Removes the files of a saved or discarded recording from its computer. */
    async clearRecording({ recordingId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const recording = await findRecording(database, recordingId);
      if (recording?.status !== 'saved' && recording?.status !== 'discarded') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        if (recording.hasFile) await new Recorder(await liveComputers.work(recording), recording).remove();
      } catch (error) {
        // The files are gone with a deleted computer.
        const isGone = error instanceof DomainError && error.kind === 'notFound';
        if (!isGone) throw failureOf(error, 'A recording could not be cleared away.', { recordingId });
      }
      await noteCleared(database, recordingId);
    },
  };
}
