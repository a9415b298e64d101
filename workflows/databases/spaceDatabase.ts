import { ActivityFailure, defineSignal, isCancellation, proxyActivities, setHandler } from '@temporalio/workflow';
import type { Activities, LongDatabaseQueueActivities } from '../../activities/main.ts';

export interface SpaceDatabaseInput {
  databaseId: string;
  /** The queue of alignments that take long. */
  longQueue: string;
  heartbeatTimeoutMs: number;
}

/** Something is wished of the database; its row says what. */
export const databaseChangedSignal = defineSignal('changed');

// Only rows are touched, and somebody waits for the end of what they asked for.
const { giveUpDatabase } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/**
 * One database of a space, until the server has it as its row wants it: no two workers ever change it at once. What the
 * server does not do in its time is told to those who wait, and the sweeper comes back to it.
 */
export async function spaceDatabase({ databaseId, longQueue, heartbeatTimeoutMs }: SpaceDatabaseInput): Promise<void> {
  // Each step of it can be repeated. Given up while the request still waits, so that it hears why.
  const options = {
    // Longest where it is filled from a backup.
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '500 milliseconds', maximumInterval: '10 seconds', maximumAttempts: 6 },
  } as const;
  const { alignDatabase } = proxyActivities<Activities>(options);
  let told = true;
  setHandler(databaseChangedSignal, () => {
    told = true;
  });
  while (told) {
    told = false;
    try {
      if ((await alignDatabase({ databaseId })) === 'takesLong') {
        const { alignDatabaseAtLength } = proxyActivities<LongDatabaseQueueActivities>({
          ...options,
          taskQueue: longQueue,
        });
        await alignDatabaseAtLength({ databaseId });
      }
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      await giveUpDatabase({ databaseId });
    }
  }
}
