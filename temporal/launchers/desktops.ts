import type { Config } from '../../config/index.ts';
import { desktop, desktopChangedSignal } from '../../workflows/desktops/desktop.ts';
import { desktopRecording, recordingChangedSignal } from '../../workflows/desktops/recording.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { desktopRecordingWorkflowId, desktopWorkflowId } from '../workflowIds.ts';

/** Which session or recording, taken from its row. */
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

    /** The same for a recording. */
    startRecording: ({ id, spaceId }: DesktopReference) =>
      kit.startOrSignal(desktopRecording, recordingChangedSignal, {
        workflowId: desktopRecordingWorkflowId(id),
        args: [
          {
            recordingId: id,
            heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
            maxHistoryEvents: temporal.maxHistoryEvents,
          },
        ],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'desktopRecording' },
        ],
        summary: 'Recording of a desktop',
        mayStartAgain: true,
      }),

    runningRecordings: <Reference extends DesktopReference>(recordings: readonly Reference[]) =>
      kit.running(recordings, ({ id }) => desktopRecordingWorkflowId(id)),
  };
}
