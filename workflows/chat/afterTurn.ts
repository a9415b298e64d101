import { ActivityFailure, proxyActivities, sleep } from '@temporalio/workflow';
import type { AfterTurn, Audience } from '../../activities/chat/endTurn.ts';
import type { Activities } from '../../activities/main.ts';
import { rarely } from '../retries.ts';

/** Gives readers of the turn's stream time to receive its end. */
const graceBeforePush = '2 seconds';

// A push is late after minutes and pointless after hours, so it is retried for an hour only.
const { pushTurn } = proxyActivities<Activities>({
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '1 hour',
  retry: rarely,
});

// Few attempts: if the thread stays without a name, its next turn tries again.
const { nameThread } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { ...rarely, maximumAttempts: 3 },
});

/** Follow-up work after a turn has ended. None of it can fail the turn. */
export async function afterTurn(turnId: string, { audience, namesThread }: AfterTurn): Promise<void> {
  await Promise.all([namesThread && nameThread({ turnId }).catch(ignoreFailure), audience && notify(turnId, audience)]);
}

/** Notifies the owner's devices of the turn's state, unless the owner has seen it. */
export async function notify(turnId: string, { seq, subscriptionIds }: Audience): Promise<void> {
  await sleep(graceBeforePush);
  await Promise.all(
    subscriptionIds.map((subscriptionId) => pushTurn({ turnId, seq, subscriptionId }).catch(ignoreFailure)),
  );
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof ActivityFailure)) throw error;
}
