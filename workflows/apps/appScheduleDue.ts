import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { rows } from '../retries.ts';

// It also reads a manifest. After an hour the sweeper takes over.
const { takeDueAppRun } = proxyActivities<Activities>({ ...rows, scheduleToCloseTimeout: '1 hour' });

/** Looks whether a schedule of an app is due, and starts its run. A schedule starts it; the row decides. */
export async function appScheduleDue(scheduleId: string): Promise<void> {
  const waitMs = await takeDueAppRun({ scheduleId });
  if (waitMs === undefined) return;
  await sleep(waitMs);
  await takeDueAppRun({ scheduleId });
}
