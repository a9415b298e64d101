import { type ActivityOptions, proxyActivities } from '@temporalio/workflow';
import type { Activities, LongDatabaseQueueActivities } from '../../activities/main.ts';
import { type ActorInput, codeOf, live } from '../actor.ts';
import { promptly, rows } from '../retries.ts';

export interface SpaceDatabaseInput extends ActorInput {
  databaseId: string;
  /** The queue of alignments that take long. */
  longQueue: string;
}

const { giveUpDatabase } = proxyActivities<Activities>(rows);

/**
 * One database of a space, until the server has it as its row wants it: no two workers ever change it at once. What the
 * server does not do in its time is told to those who wait, and the sweeper comes back to it.
 */
export async function spaceDatabase(input: SpaceDatabaseInput): Promise<void> {
  const { databaseId, longQueue, heartbeatTimeoutMs } = input;
  const options: ActivityOptions = {
    // It takes longest where it is filled from a backup.
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    // Each step of it can be repeated. It is given up after some 16 seconds, while the request still waits and hears why.
    retry: { ...promptly, maximumAttempts: 8 },
  };
  const { alignDatabase } = proxyActivities<Activities>(options);
  const { alignDatabaseAtLength } = proxyActivities<LongDatabaseQueueActivities>({ ...options, taskQueue: longQueue });
  async function align(): Promise<void> {
    if ((await alignDatabase({ databaseId })) === 'takesLong') await alignDatabaseAtLength({ databaseId });
  }
  await live<{ do: 'rest' }>(input, {
    async look() {
      if ((await codeOf(align())) !== undefined) await giveUpDatabase({ databaseId });
      return { do: 'rest' };
    },
    steps: {},
  });
}
