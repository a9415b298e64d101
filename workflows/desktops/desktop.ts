import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { DesktopStep } from '../../models/desktops/steps.ts';
import { type ActorInput, live } from '../actor.ts';
import { promptly, proxyRows } from '../retries.ts';

export interface DesktopInput extends ActorInput {
  sessionId: string;
}

/** The workflow of one desktop session. It runs until no process of the session is left. */
export async function desktop(input: DesktopInput): Promise<void> {
  const { sessionId, heartbeatTimeoutMs } = input;
  // The look also asks the computer's host whether the X server lives.
  const { lookAtDesktop, failDesktop } = proxyRows<Activities>();
  // Both may be repeated: the X server's process has the session's id, so it starts only once.
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
