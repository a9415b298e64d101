import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { patiently } from '../retries.ts';

// Few attempts, since the next run comes soon. Heartbeats, since a busy account has many pages of sessions.
const { reconcileCheckouts, meterStorage } = proxyActivities<Activities>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: '1 minute',
  retry: { ...patiently, maximumAttempts: 5 },
});

/** Compares the provider's payments with the credited ones, and books the day's storage. A schedule starts it. */
export async function reconcilePayments(): Promise<{ looked: number; credited: number; unexplained: number }> {
  const [storage, checkouts] = await Promise.allSettled([meterStorage(), reconcileCheckouts()]);
  if (checkouts.status === 'rejected') throw checkouts.reason;
  if (storage.status === 'rejected') throw storage.reason;
  return checkouts.value;
}
