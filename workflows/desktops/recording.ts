import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { RecordingStep } from '../../models/desktops/recordingSteps.ts';
import { type ActorInput, live } from '../actor.ts';
import { promptly, rows, rowsLocally } from '../retries.ts';

export interface DesktopRecordingInput extends ActorInput {
  recordingId: string;
}

/** How long a computer that does not answer is left alone: twice as long each time. */
const firstPauseMs = 5_000;
const longestPauseMs = 120_000;

// The look also asks the computer's host whether the recorder has ended.
const { lookAtRecording } = proxyLocalActivities<Activities>(rowsLocally);
// It stops the recorder as well.
const { failRecording } = proxyActivities<Activities>(rows);

/** One recording of a desktop, from its order until it is on the drive and nowhere else. Its session never waits for it. */
export async function desktopRecording(input: DesktopRecordingInput): Promise<void> {
  const { recordingId, heartbeatTimeoutMs } = input;
  // All can be done again: the recorder has the recording's id, by which it is started once, and of all that save it one
  // puts its file into the drive. Few attempts, since what is wanted may have changed.
  const { startRecording, stopRecording, clearRecording } = proxyActivities<Activities>({
    startToCloseTimeout: '1 minute',
    scheduleToCloseTimeout: '2 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { ...promptly, maximumAttempts: 5 },
  });
  // However large the file is; a worker that dies is noticed by its heartbeats.
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
