import { type ActivityOptions, proxyActivities } from '@temporalio/workflow';
import type { Activities, LongDatabaseQueueActivities } from '../../activities/main.ts';
import { type ActorInput, codeOf, live } from '../actor.ts';
import { promptly, rows } from '../retries.ts';

export interface SpaceDatabaseInput extends ActorInput {
  databaseId: string;
  /** The task queue of alignments that take long. */
  longQueue: string;
}

const { giveUpDatabase } = proxyActivities<Activities>(rows);

/**
 * Aligns one database of a space with its row. Two workers never change it at once. If the server does not do it in
 * time, the operations that wait fail, and the sweeper comes back to it.
 */
export async function spaceDatabase(input: SpaceDatabaseInput): Promise<void> {
  const { databaseId, longQueue, heartbeatTimeoutMs } = input;
  const options: ActivityOptions = {
    // Filling a database from a backup takes longest.
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    // Each step can be repeated. It gives up after about 16 seconds, while the request still waits and hears why.
    retry: { ...promptly, maximumAttempts: 8 },
  };
  const { alignDatabase } = proxyActivities<Activities>(options);
  const { alignDatabaseAtLength } = proxyActivities<LongDatabaseQueueActivities>({ ...options, taskQueue: longQueue });
  async function align(): Promise<void> {
    if ((await alignDatabase({ databaseId })) === 'takesLong') await alignDatabaseAtLength({ databaseId });
  }
  await live<{ do: 'rest' }>(input, {
    async look() {
      // What is asked for from here on is not part of this failure, however late it is recorded.
      if ((await codeOf(align())) !== undefined) await giveUpDatabase({ databaseId, failedAtMs: Date.now() });
      return { do: 'rest' };
    },
    steps: {},
  });
}
