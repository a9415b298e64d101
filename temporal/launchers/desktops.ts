import type { Config } from '../../config/index.ts';
import { desktop, desktopChangedSignal } from '../../workflows/desktops/desktop.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { desktopWorkflowId } from '../workflowIds.ts';

/** Which session, taken from its row. */
export interface DesktopReference {
  id: string;
  spaceId: string;
}

export function createDesktopLauncher(kit: LauncherKit, { temporal }: Config) {
  return {
    /** Starts a session's workflow, or has the one that waits look again. */
    startDesktop: ({ id, spaceId }: DesktopReference) =>
      kit.startOrSignal(desktop, desktopChangedSignal, {
        workflowId: desktopWorkflowId(id),
        args: [
          {
            sessionId: id,
            heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
            maxHistoryEvents: temporal.maxHistoryEvents,
          },
        ],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'desktop' },
        ],
        summary: 'Desktop session',
        mayStartAgain: true,
      }),

    runningDesktops: <Reference extends DesktopReference>(sessions: readonly Reference[]) =>
      kit.running(sessions, ({ id }) => desktopWorkflowId(id)),
  };
}
