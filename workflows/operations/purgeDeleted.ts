import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { isPatched } from '../patches.ts';

export interface PurgeDeletedInput {
  operationId: string;
  /** What was deleted: a thread, or a space with all its threads. */
  scope: { threadId: string } | { spaceId: string };
  heartbeatTimeoutMs: number;
}

const betweenLooks = '1 second';
const longestWaitMs = 10_000;

// Rows only: repeating is harmless, and giving up would leave what somebody asked to have removed.
const { stopTurns, purgeComputersOf, purgeRepositoriesOf } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/**
 * Permanently removes what a user has deleted. The rows have been hidden since the request. Running turns are stopped
 * first, so that none writes after the purge.
 */
export async function purgeDeleted(input: PurgeDeletedInput): Promise<void> {
  const { purgeRows, purgeDriveOf } = proxyActivities<Activities>({
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
  });
  await asOperation(input.operationId, async () => {
    while ((await stopTurns(input.scope)) > 0) await sleep(betweenLooks);
    if ('spaceId' in input.scope && isPatched('computers')) {
      while ((await purgeComputersOf(input.scope)) > 0) await sleep(betweenLooks);
    }
    if ('spaceId' in input.scope && isPatched('repositories')) {
      // A clone takes a while to end where its worker is lost.
      for (let waitMs = 500; (await purgeRepositoriesOf(input.scope)) > 0; ) {
        waitMs = Math.min(waitMs * 2, longestWaitMs);
        await sleep(waitMs);
      }
    }
    // Before the rows that lead to a thread's files.
    if (isPatched('drive')) await purgeDriveOf(input.scope);
    await purgeRows(input.scope);
    return undefined;
  });
}
