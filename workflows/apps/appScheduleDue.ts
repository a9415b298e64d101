import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rows } from '../retries.ts';

// The activity also reads a manifest. After an hour the sweeper takes over.
const { takeDueAppRun } = proxyActivities<Activities>({ ...rows, scheduleToCloseTimeout: '1 hour' });

/** Starts the run of an app's schedule if that is due. A Temporal schedule triggers this; the row decides. */
export async function appScheduleDue(scheduleId: string): Promise<void> {
  const waitMs = await takeDueAppRun({ scheduleId });
  if (waitMs === undefined) return;
  await sleep(waitMs);
  await takeDueAppRun({ scheduleId });
}
