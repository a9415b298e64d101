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

/** Ids and limits only: what is wanted of the session is in its row. */
export interface DesktopInput {
  sessionId: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** Something is wanted of the session, or has become of it. */
export const desktopChangedSignal = defineSignal('changed');

// Rows are read, and the computer's host is asked how the X server is: safe to repeat, and local, since somebody waits
// for a start.
const { lookAtDesktop, failDesktop } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

/** One desktop session, from its order until nothing of it runs any more. */
export async function desktop(input: DesktopInput): Promise<void> {
  const { sessionId, heartbeatTimeoutMs } = input;
  let told = 0;
  setHandler(desktopChangedSignal, () => void told++);
  // Both can be done again: the X server has the session's id, by which it is started once.
  const { startDesktop, stopDesktop } = proxyActivities<Activities>({
    startToCloseTimeout: '1 minute',
    scheduleToCloseTimeout: '2 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '200 milliseconds', maximumInterval: '5 seconds' },
  });
  for (;;) {
    const seen = told;
    const step = await lookAtDesktop({ sessionId });
    if (step.do === 'rest') {
      if (told === seen) return;
    } else if (step.do === 'watch') {
      await condition(() => told > seen, step.waitMs);
    } else {
      try {
        if (step.do === 'start') await startDesktop({ sessionId });
        else await stopDesktop({ sessionId });
      } catch (error) {
        if (!(error instanceof ActivityFailure)) throw error; // our bug: the task is retried until it is fixed
        if (step.do === 'start') await failDesktop({ sessionId, code: failureCode(error) });
      }
    }
    if (isHistoryFull(input)) await continueAsNew<typeof desktop>(input);
  }
}
