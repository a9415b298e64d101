import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { RecordingStep } from '../../models/desktops/recordingSteps.ts';
import { type ActorInput, live } from '../actor.ts';
import { promptly, proxyRows, rows } from '../retries.ts';

export interface DesktopRecordingInput extends ActorInput {
  recordingId: string;
}

/** The pause before a computer that does not answer is asked again. It doubles each time. */
const firstPauseMs = 5_000;
const longestPauseMs = 120_000;

// Not a local activity: it stops the recorder as well.
const { failRecording } = proxyActivities<Activities>(rows);

/**
 * The workflow of one recording. It runs until the file is only in the drive, or discarded. The session never waits for
 * it.
 */
export async function desktopRecording(input: DesktopRecordingInput): Promise<void> {
  const { recordingId, heartbeatTimeoutMs } = input;
  // The look also asks the computer's host whether the recorder has ended.
  const { lookAtRecording } = proxyRows<Activities>();
  // All may be repeated: the recorder's process has the recording's id, so it starts only once, and only one of several
  // saves puts its file into the drive. Few attempts, because the order may have changed in the meantime.
  const { startRecording, stopRecording, clearRecording } = proxyActivities<Activities>({
    startToCloseTimeout: '1 minute',
    scheduleToCloseTimeout: '2 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { ...promptly, maximumAttempts: 5 },
  });
  // Long enough for any file. Missing heartbeats show that a worker has died.
  const { saveRecording } = proxyActivities<Activities>({
    startToCloseTimeout: '3 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { ...promptly, maximumAttempts: 3 },
  });
  await live<RecordingStep>(input, {
    look: () => lookAtRecording({ recordingId }),
    steps: {
      start: () => startRecording({ recordingId }),
      stop: () => stopRecording({ recordingId }),
      save: () => saveRecording({ recordingId }),
      clear: () => clearRecording({ recordingId }),
    },
    async ended(step, code) {
      if (code !== undefined && step.do === 'start') await failRecording({ recordingId, code });
    },
    pauseMs: (step, failures) =>
      step.do === 'start' ? 0 : Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs),
  });
}
