import type { Config } from '../../config/index.ts';
import { appRun, appRunChangedSignal } from '../../workflows/apps/appRun.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { runTaskQueue } from '../taskQueues.ts';
import { appRunWorkflowId } from '../workflowIds.ts';

/** Which run, taken from its row. */
export interface RunReference {
  id: string;
  spaceId: string;
}

export function createAppLauncher(kit: LauncherKit, { installation, temporal }: Config) {
  return {
    /** Starts a run's workflow, or has the one that waits look again. */
    startRun: ({ id, spaceId }: RunReference) =>
      kit.startOrSignal(appRun, appRunChangedSignal, {
        workflowId: appRunWorkflowId(id),
        args: [
          {
            runId: id,
            runQueue: runTaskQueue(installation),
            heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
            maxHistoryEvents: temporal.maxHistoryEvents,
          },
        ],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'appRun' },
        ],
        summary: 'Run of an app',
        mayStartAgain: true,
      }),

    runningRuns: <Reference extends RunReference>(runs: readonly Reference[]) =>
      kit.running(runs, ({ id }) => appRunWorkflowId(id)),
  };
}
