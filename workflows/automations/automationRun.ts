import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rows } from '../retries.ts';

// Starting a run also checks that its model exists. After an hour the sweeper takes over.
const { startAutomationRun, takeDueRun } = proxyActivities<Activities>({ ...rows, scheduleToCloseTimeout: '1 hour' });

/** Gives a requested run its turn. The turn has a workflow of its own. */
export async function automationRun(runId: string): Promise<void> {
  await startAutomationRun({ runId });
}

/** Starts the run of an automation that is due. A schedule starts this workflow; the row decides. */
export async function automationDue(automationId: string): Promise<void> {
  const runId = await takeDueRun({ automationId });
  if (runId !== undefined) await startAutomationRun({ runId });
}
