import { ActivityFailure, proxyActivities, sleep } from '@temporalio/workflow';
import type { AfterTurn, Audience } from '../../activities/chat/endTurn.ts';
import type { Activities } from '../../activities/main.ts';
import { rarely } from '../retries.ts';

/** By then, readers of the turn's stream have its end. */
const graceBeforePush = '2 seconds';

// A push is late after minutes and pointless after hours: it is retried only as long as somebody may still want it.
const { pushTurn } = proxyActivities<Activities>({
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '1 hour',
  retry: rarely,
});

// Nothing is lost when a thread stays without a name: its next turn asks again.
const { nameThread } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { ...rarely, maximumAttempts: 3 },
});

/** Follow-up work after a turn has ended. None of it can fail the turn. */
export async function afterTurn(turnId: string, { audience, namesThread }: AfterTurn): Promise<void> {
  await Promise.all([namesThread && nameThread({ turnId }).catch(ignoreFailure), audience && notify(turnId, audience)]);
}

/** Tells the owner's devices where the turn stands, unless somebody has seen it. */
export async function notify(turnId: string, { seq, subscriptionIds }: Audience): Promise<void> {
  await sleep(graceBeforePush);
  await Promise.all(
    subscriptionIds.map((subscriptionId) => pushTurn({ turnId, seq, subscriptionId }).catch(ignoreFailure)),
  );
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof ActivityFailure)) throw error;
}
