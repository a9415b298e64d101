import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';

// Rows, and asking for a model: harmless to repeat. What lasts longer than an hour is the sweeper's.
const { startAutomationRun, takeDueRun } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '1 hour',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
});

/** Gives a run, which somebody has asked for, its turn. The turn has a workflow of its own. */
export async function automationRun(runId: string): Promise<void> {
  await startAutomationRun({ runId });
}

/** Looks whether an automation is due, and starts its run. A schedule starts it; the row decides. */
export async function automationDue(automationId: string): Promise<void> {
  const runId = await takeDueRun({ automationId });
  if (runId !== undefined) await startAutomationRun({ runId });
}
