import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { BrowserStep } from '../../models/browsers/steps.ts';
import { type ActorInput, codeOf, live } from '../actor.ts';
import { promptly, proxyRows } from '../retries.ts';

export interface BrowserInput extends ActorInput {
  sessionId: string;
}

const closedAgainMs = 5_000;

/** The workflow of one browser session. It runs until no process of the session is left and its profile is saved. */
export async function browser(input: BrowserInput): Promise<void> {
  const { sessionId, heartbeatTimeoutMs } = input;
  // The look also asks the computer's host whether Chromium lives.
  const { lookAtBrowser, failBrowser, giveUpDownloads, giveUpSave } = proxyRows<Activities>();
  // All may be repeated: Chromium's process has the session's id, so it starts only once, and each save of a profile is
  // an object of its own.
  const { startBrowser, closeBrowser } = proxyActivities<Activities>({
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '4 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: promptly,
  });
  // No other session can use the profile until it is saved, so saving is given up in the end.
  const { collectDownloads, saveBrowser } = proxyActivities<Activities>({
    startToCloseTimeout: '10 minutes',
    scheduleToCloseTimeout: '15 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: promptly,
  });
  async function collect(): Promise<void> {
    const code = await codeOf(collectDownloads({ sessionId }));
    if (code !== undefined) await giveUpDownloads({ sessionId, code });
  }

  await live<BrowserStep>(input, {
    look: () => lookAtBrowser({ sessionId }),
    steps: {
      start: () => startBrowser({ sessionId }),
      close: () => closeBrowser({ sessionId }),
      collect,
      async save() {
        await collect();
        await saveBrowser({ sessionId });
      },
    },
    async ended(step, code) {
      if (code === undefined) return;
      if (step.do === 'start') await failBrowser({ sessionId, code });
      if (step.do === 'save') await giveUpSave({ sessionId, code });
    },
    // Pause before closing again. If the computer is gone, the next look sees that the browser has ended.
    pauseMs: (step) => (step.do === 'close' ? closedAgainMs : 0),
  });
}
