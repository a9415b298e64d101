import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { Recorder } from '../../integrations/desktops/recording/recorder.ts';
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
import { endCodeOf, findDesktop, isOffComputer } from '../../models/desktops/session.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DesktopDeps } from './deps.ts';
import { createSaveRecording } from './saveRecording.ts';

/** What will not be better for being tried again. */
const final = ['RECORDING_UNAVAILABLE', 'RECORDING_NOT_STARTED', 'COMPUTER_NOT_RUNNING', 'NOT_FOUND'];

interface Which {
  recordingId: string;
}

/** What the workflow of a recording is made of. */
export function createRecordingActivities(deps: DesktopDeps) {
  const { database, liveComputers, logger } = deps;

  async function recorderOf(recording: DesktopRecording): Promise<Recorder> {
    return new Recorder(await liveComputers.running(recording), recording);
  }

  /** A recording that has ended by itself is saved. What cannot be asked now is asked at the next look. */
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
        // What was called off meanwhile is ended by the next step.
        await noteRecording(database, recordingId);
      } catch (error) {
        throw failureOf(error, 'A recording could not be started.', recordingId);
      }
    },

    /** For one that could not be started: what there is of it is ended. */
    async failRecording({ recordingId, code }: Which & { code: string }): Promise<void> {
      const recording = await findRecording(database, recordingId);
      if (recording?.status !== 'starting') return;
      try {
        const recorder = await recorderOf(recording);
        await recorder.stop();
        await recorder.remove();
      } catch (error) {
        // It ends by itself when it is as long as it may become.
        logger.warn({ err: error, recordingId }, 'A recorder may run still.');
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
        throw failureOf(error, 'A recording could not be ended.', recordingId);
      }
    },

    saveRecording: createSaveRecording(deps, failureOf),

    /** Takes what is saved, or was thrown away, from its computer. */
    async clearRecording({ recordingId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const recording = await findRecording(database, recordingId);
      if (recording?.status !== 'saved' && recording?.status !== 'discarded') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        if (recording.hasFile) await new Recorder(await liveComputers.work(recording), recording).remove();
      } catch (error) {
        // Its computer was deleted, with all that was on it.
        const isGone = error instanceof DomainError && error.kind === 'notFound';
        if (!isGone) throw failureOf(error, 'A recording could not be cleared away.', recordingId);
      }
      await noteCleared(database, recordingId);
    },
  };

  /** What exactly went wrong is in the log, and not in the history. */
  function failureOf(error: unknown, message: string, recordingId: string): unknown {
    if (!(error instanceof DomainError)) return error;
    logger.warn({ err: error, recordingId }, message);
    return ApplicationFailure.create({
      type: error.code,
      message: error.code,
      nonRetryable: final.includes(error.code),
    });
  }
}
