import { ActivityCancellationType, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities, RunQueueActivities } from '../../activities/main.ts';
import type { RunStatus } from '../../models/apps/run.ts';
import type { RunOf, RunStep } from '../../models/apps/steps.ts';
import { type ActorInput, live } from '../actor.ts';
import { tellBadEnd } from '../outcome.ts';
import { patiently, proxyRows } from '../retries.ts';

export interface AppRunInput extends ActorInput {
  runId: string;
  /** The task queue of the activity that runs the program. */
  runQueue: string;
}

/** Time for the computer to wake before the program, for the log after it, and for outages. */
const marginMs = 30 * 60_000;

/**
 * One run of an app's component. It waits for its turn, and is retried as often as its manifest says. Returns how it
 * ended, for an operator in the Temporal UI.
 */
export async function appRun(input: AppRunInput): Promise<RunStatus | undefined> {
  const { runId, runQueue, heartbeatTimeoutMs } = input;
  const { lookAtAppRun, failAppRunAttempt } = proxyRows<Activities>();
  const { status, badEnd } = await live<RunStep>(input, {
    look: () => lookAtAppRun({ runId }),
    steps: {
      attempt({ attempt, timeoutMs, of }) {
        setCurrentDetails(`${nameOf(of)}: attempt ${attempt}`);
        // If its worker dies, the program goes on and the next worker reads on. The process has its own timeout.
        const { runAppAttempt } = proxyActivities<RunQueueActivities>({
          taskQueue: runQueue,
          scheduleToCloseTimeout: timeoutMs + marginMs,
          heartbeatTimeout: heartbeatTimeoutMs,
          cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
          retry: patiently,
        });
        return runAppAttempt({ runId, attempt });
      },
    },
    async ended({ attempt }, code) {
      if (code !== undefined) await failAppRunAttempt({ runId, attempt, code });
    },
  });
  if (badEnd !== undefined) tellBadEnd(nameOf(badEnd.of), badEnd);
  return status;
}

function nameOf({ component, itemId }: RunOf): string {
  return `Component ${component} of app ${itemId}`;
}
