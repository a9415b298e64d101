import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { DesktopStep } from '../../models/desktops/steps.ts';
import { type ActorInput, live } from '../actor.ts';
import { promptly, rowsLocally } from '../retries.ts';

export interface DesktopInput extends ActorInput {
  sessionId: string;
}

// The look also asks the computer's host whether the X server lives.
const { lookAtDesktop, failDesktop } = proxyLocalActivities<Activities>(rowsLocally);

/** One desktop session, from its order until nothing of it runs any more. */
export async function desktop(input: DesktopInput): Promise<void> {
  const { sessionId, heartbeatTimeoutMs } = input;
  // Both can be done again: the X server has the session's id, by which it is started once.
  const { startDesktop, stopDesktop } = proxyActivities<Activities>({
    startToCloseTimeout: '1 minute',
    scheduleToCloseTimeout: '2 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: promptly,
  });
  await live<DesktopStep>(input, {
    look: () => lookAtDesktop({ sessionId }),
    steps: { start: () => startDesktop({ sessionId }), stop: () => stopDesktop({ sessionId }) },
    async ended(step, code) {
      if (code !== undefined && step.do === 'start') await failDesktop({ sessionId, code });
    },
  });
}
