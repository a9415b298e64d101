import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rows } from '../retries.ts';

// Starting a run also asks whether its model is there. After an hour the sweeper takes over.
const { startAutomationRun, takeDueRun } = proxyActivities<Activities>({ ...rows, scheduleToCloseTimeout: '1 hour' });

/** Gives a run, which somebody has asked for, its turn. The turn has a workflow of its own. */
export async function automationRun(runId: string): Promise<void> {
  await startAutomationRun({ runId });
}

/** Looks whether an automation is due, and starts its run. A schedule starts it; the row decides. */
export async function automationDue(automationId: string): Promise<void> {
  const runId = await takeDueRun({ automationId });
  if (runId !== undefined) await startAutomationRun({ runId });
}
