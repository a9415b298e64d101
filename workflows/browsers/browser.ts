import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { BrowserStep } from '../../models/browsers/steps.ts';
import { type ActorInput, codeOf, live } from '../actor.ts';
import { promptly, rowsLocally } from '../retries.ts';

export interface BrowserInput extends ActorInput {
  sessionId: string;
}

// The look also asks the computer's host whether Chromium lives.
const { lookAtBrowser, failBrowser, giveUpDownloads, giveUpSave } = proxyLocalActivities<Activities>(rowsLocally);

const closedAgainMs = 5_000;

/** One browser session, from its order until nothing of it runs and its profile is saved. */
export async function browser(input: BrowserInput): Promise<void> {
  const { sessionId, heartbeatTimeoutMs } = input;
  // All can be done again: Chromium has the session's id, by which it is started once, and a profile is saved to an
  // object of its own.
  const { startBrowser, closeBrowser } = proxyActivities<Activities>({
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '4 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: promptly,
  });
  // Nobody else can use the profile until it is saved, so saving is given up in the end.
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
    // A browser whose computer has gone has ended, and the next look sees that.
    pauseMs: (step) => (step.do === 'close' ? closedAgainMs : 0),
  });
}
