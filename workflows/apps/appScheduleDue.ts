import { proxyActivities, sleep } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';

// Rows, and a manifest: harmless to repeat. What lasts longer than an hour is the sweeper's.
const { takeDueAppRun } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  scheduleToCloseTimeout: '1 hour',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
});

/** Looks whether a schedule of an app is due, and starts its run. A schedule starts it; the row decides. */
export async function appScheduleDue(scheduleId: string): Promise<void> {
  const waitMs = await takeDueAppRun({ scheduleId });
  if (waitMs === undefined) return;
  await sleep(waitMs);
  await takeDueAppRun({ scheduleId });
}
