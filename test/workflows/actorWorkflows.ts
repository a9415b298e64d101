import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import { live } from '../../workflows/actor.ts';

export type Next = { do: 'rest' } | { do: 'watch'; waitMs: number } | { do: 'work'; pauseMs?: number };

export interface ScriptedActivities {
  look(): Promise<Next>;
  work(): Promise<void>;
  ended(code: string | undefined): Promise<void>;
  isFor(): Promise<boolean>;
}

const { look, work, ended, isFor } = proxyActivities<ScriptedActivities>({
  startToCloseTimeout: '1 minute',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { maximumAttempts: 1 },
});

/** An actor whose looks and steps a test controls. */
export async function scripted(): Promise<void> {
  await live<Next>(
    { maxHistoryEvents: 1_000 },
    {
      look,
      steps: { work },
      ended: (_step, code) => ended(code),
      pauseMs: ({ pauseMs = 0 }) => pauseMs,
      interruption: { code: 'INTERRUPTED', isFor },
    },
  );
}
