import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Config } from '../config/index.ts';
import { reconcilePayments } from '../workflows/billing/reconcilePayments.ts';
import { reconcileScheduleId } from './workflowIds.ts';

/** The schedule that compares the provider's books with ours, made or brought up to date. */
export async function ensureReconciliation(client: Client, config: Config, taskQueue: string): Promise<void> {
  const scheduleId = reconcileScheduleId(config.installation);
  const schedule = {
    spec: { intervals: [{ every: config.billing.reconcileMinutes * 60_000 }] },
    action: {
      type: 'startWorkflow',
      workflowType: reconcilePayments,
      workflowId: scheduleId,
      taskQueue,
      workflowExecutionTimeout: '6 hours',
      staticSummary: 'Reconcile payments: credit what was paid, report what cannot be explained',
    },
    // One looks at all that the ones before have missed.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
  } as const;
  try {
    await client.schedule.create({ scheduleId, ...schedule, args: undefined } as never);
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(scheduleId).update((previous) => ({ ...schedule, state: previous.state }) as never);
  }
}
