import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Config } from '../config/index.ts';
import { sweeps } from '../workflows/operations/rules/sweeps.ts';
import { sweep } from '../workflows/operations/sweep.ts';
import { sweeperScheduleId } from './workflowIds.ts';

/**
 * The schedule that starts the sweeper, made or brought up to date, and one sweep right away: whatever a crash has left is
 * found at the next start and not an interval later.
 */
export async function ensureSweeper(client: Client, config: Config, taskQueue: string): Promise<void> {
  const scheduleId = sweeperScheduleId(config.installation);
  const schedule = {
    spec: { intervals: [{ every: config.sweeper.intervalSeconds * 1_000 }] },
    action: {
      type: 'startWorkflow',
      workflowType: sweep,
      args: [sweeps],
      workflowId: scheduleId,
      taskQueue,
      workflowExecutionTimeout: '1 hour',
      staticSummary: 'Sweep: start what was lost, end what has vanished',
    },
    // A sweep that is late makes the next one superfluous, and missed ones have nothing to add.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
  } as const;
  const handle = client.schedule.getHandle(scheduleId);
  try {
    await client.schedule.create({
      scheduleId,
      ...schedule,
      state: { triggerImmediately: true },
    } as never);
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await handle.update((previous) => ({ ...schedule, state: previous.state }) as never);
    await handle.trigger(ScheduleOverlapPolicy.SKIP);
  }
}
