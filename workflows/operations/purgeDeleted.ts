import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { patiently, rows } from '../retries.ts';

export interface PurgeDeletedInput {
  operationId: string;
  /** A thread, or a space with all its threads. */
  scope: { threadId: string } | { spaceId: string };
  heartbeatTimeoutMs: number;
}

const firstWaitMs = 500;
/** A turn may take days to end, and a history holds a limited number of looks. */
const longestWaitMs = 5 * 60_000;

const { stopTurns, purgeComputersOf, purgeRepositoriesOf, purgeDatabasesOf } = proxyActivities<Activities>(rows);

/**
 * Permanently removes what a user has deleted. The rows have been hidden since the request. Running turns are stopped
 * first, so that none writes after the purge.
 */
export async function purgeDeleted(input: PurgeDeletedInput): Promise<void> {
  const { purgeRows, purgeDriveOf } = proxyActivities<Activities>({
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: patiently,
  });
  await asOperation(input.operationId, async () => {
    const { scope } = input;
    await untilNone(() => stopTurns(scope));
    if ('spaceId' in scope) {
      await untilNone(() => purgeComputersOf(scope));
      await untilNone(() => purgeRepositoriesOf(scope));
      await untilNone(() => purgeDatabasesOf(scope));
    }
    // The drive's files are found by the thread's rows, so they go first.
    await purgeDriveOf(scope);
    await purgeRows(scope);
    return undefined;
  });
}

/** Repeats `look`, with growing waits, until nothing is left. */
async function untilNone(look: () => Promise<number>): Promise<void> {
  for (let waitMs = firstWaitMs; (await look()) > 0; waitMs = Math.min(waitMs * 2, longestWaitMs)) await sleep(waitMs);
}
