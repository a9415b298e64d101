import {
  ActivityFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { failureCode } from '../failureCode.ts';
import { isHistoryFull } from '../historyLimit.ts';

/** Ids and limits only: what is wanted of the recording is in its row. */
export interface DesktopRecordingInput {
  recordingId: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** Something is wanted of the recording. */
export const recordingChangedSignal = defineSignal('changed');

/** What a computer that cannot be asked is given, longer each time. */
const firstRestMs = 5_000;
const longestRestMs = 120_000;

// Rows are read, and the computer's host is asked how the recorder is: safe to repeat, and local, since somebody waits
// for a start.
const { lookAtRecording } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

/** One recording of a desktop, from its order until it is on the drive and nowhere else. Its session never waits for it. */
export async function desktopRecording(input: DesktopRecordingInput): Promise<void> {
  const { recordingId, heartbeatTimeoutMs } = input;
  let told = 0;
  setHandler(recordingChangedSignal, () => void told++);
  // All can be done again: the recorder has the recording's id, by which it is started once, and of all that save it one
  // puts its file into the drive. Few attempts, since what is wanted may have changed.
  const { startRecording, stopRecording, clearRecording } = proxyActivities<Activities>({
    startToCloseTimeout: '1 minute',
    scheduleToCloseTimeout: '2 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '200 milliseconds', maximumInterval: '5 seconds', maximumAttempts: 5 },
  });
  const { failRecording } = proxyActivities<Activities>({ startToCloseTimeout: '1 minute' });
  // However large the file is; a worker that dies is noticed by its heartbeats.
  const { saveRecording } = proxyActivities<Activities>({
    startToCloseTimeout: '3 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '500 milliseconds', maximumInterval: '5 seconds', maximumAttempts: 3 },
  });
  const steps = { stop: stopRecording, save: saveRecording, clear: clearRecording };
  let restMs = firstRestMs;
  for (;;) {
    const seen = told;
    const step = await lookAtRecording({ recordingId });
    if (step.do === 'rest') {
      if (told === seen) return;
    } else if (step.do === 'watch') {
      await condition(() => told > seen, step.waitMs);
    } else {
      try {
        if (step.do === 'start') await startRecording({ recordingId });
        else await steps[step.do]({ recordingId });
        restMs = firstRestMs;
      } catch (error) {
        if (!(error instanceof ActivityFailure)) throw error; // our bug: the task is retried until it is fixed
        if (step.do === 'start') await failRecording({ recordingId, code: failureCode(error) });
        else {
          await condition(() => told > seen, restMs);
          restMs = Math.min(restMs * 2, longestRestMs);
        }
      }
    }
    if (isHistoryFull(input)) await continueAsNew<typeof desktopRecording>(input);
  }
}
