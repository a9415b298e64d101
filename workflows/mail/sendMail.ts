import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rarely } from '../retries.ts';

// A mail server that is down is usually back in minutes. The activity gives up when the mail would be too late.
const { deliverMail } = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '30 seconds',
  scheduleToCloseTimeout: '8 days',
  retry: rarely,
});

/** Sends a mail that waits in the table, with as many attempts as needed. */
export async function sendMail(mailId: string): Promise<void> {
  await deliverMail(mailId);
}
