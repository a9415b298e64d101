import type { Config } from '../../config/index.ts';
import { browser, browserChangedSignal } from '../../workflows/browsers/browser.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { browserWorkflowId } from '../workflowIds.ts';

/** Which session, taken from its row. */
export interface BrowserReference {
  id: string;
  spaceId: string;
}

export function createBrowserLauncher(kit: LauncherKit, { temporal }: Config) {
  return {
    /** Starts a session's workflow, or has the one that waits look again. */
    startBrowser: ({ id, spaceId }: BrowserReference) =>
      kit.startOrSignal(browser, browserChangedSignal, {
        workflowId: browserWorkflowId(id),
        args: [
          {
            sessionId: id,
            heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
            maxHistoryEvents: temporal.maxHistoryEvents,
          },
        ],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'browser' },
        ],
        summary: 'Browser session',
        mayStartAgain: true,
      }),

    runningBrowsers: <Reference extends BrowserReference>(sessions: readonly Reference[]) =>
      kit.running(sessions, ({ id }) => browserWorkflowId(id)),
  };
}
