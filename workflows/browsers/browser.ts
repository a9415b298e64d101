import {
  ActivityFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import type { BrowserStep } from '../../models/browsers/steps.ts';
import { failureCode } from '../failureCode.ts';
import { isHistoryFull } from '../historyLimit.ts';

/** Ids and limits only: what is wanted of the session is in its row. */
export interface BrowserInput {
  sessionId: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** Something is wanted of the session, or has become of it. */
export const browserChangedSignal = defineSignal('changed');

// Rows are read, and the computer's host is asked how Chromium is: safe to repeat, and local, since somebody waits for a
// start.
const { lookAtBrowser, failBrowser, giveUpDownloads, giveUpSave } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

const closedAgainMs = 5_000;

/** One browser session, from its order until nothing of it runs and its profile is saved. */
export async function browser(input: BrowserInput): Promise<void> {
  const { sessionId } = input;
  let told = 0;
  setHandler(browserChangedSignal, () => void told++);
  const does = stepsOf(input);
  for (;;) {
    const seen = told;
    const step = await lookAtBrowser({ sessionId });
    if (step.do === 'rest') {
      if (told === seen) return;
    } else if (step.do === 'watch') {
      await condition(() => told > seen, step.waitMs);
    } else {
      await does[step.do]();
    }
    if (isHistoryFull(input)) await continueAsNew<typeof browser>(input);
  }
}

type Work = Exclude<BrowserStep['do'], 'rest' | 'watch'>;

function stepsOf({ sessionId, heartbeatTimeoutMs }: BrowserInput): Record<Work, () => Promise<void>> {
  // All of it can be done again: Chromium has the session's id, by which it is started once, and a profile is saved to
  // an object of its own.
  const retry = { initialInterval: '200 milliseconds', maximumInterval: '5 seconds' } as const;
  const { startBrowser, closeBrowser } = proxyActivities<Activities>({
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '4 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry,
  });
  // Nobody else has the profile until then, so it is given up some time.
  const { collectDownloads, saveBrowser } = proxyActivities<Activities>({
    startToCloseTimeout: '10 minutes',
    scheduleToCloseTimeout: '15 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry,
  });
  return {
    start: () => orElse(startBrowser, failBrowser),
    // Without its computer it has ended, which the next look finds out.
    close: () => orElse(closeBrowser, () => sleep(closedAgainMs)),
    collect: () => orElse(collectDownloads, giveUpDownloads),
    async save() {
      await orElse(collectDownloads, giveUpDownloads);
      await orElse(saveBrowser, giveUpSave);
    },
  };

  async function orElse(
    work: (which: { sessionId: string }) => Promise<void>,
    otherwise: (failed: { sessionId: string; code: string }) => Promise<void>,
  ): Promise<void> {
    try {
      await work({ sessionId });
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error; // our bug: the task is retried until it is fixed
      await otherwise({ sessionId, code: failureCode(error) });
    }
  }
}
