import { proxyActivities } from '@temporalio/workflow';

// The next sweep comes soon and picks up what fails here, so attempts are few.
const activities = proxyActivities<Record<string, () => Promise<unknown>>>({
  startToCloseTimeout: '10 minutes',
  // A sweep whose worker was killed holds up the next ones, so it times out soon.
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumAttempts: 3 },
});

/**
 * Closes the gaps that no single process can: intents whose workflow was never started, rows whose workflow has
 * vanished, and rows past their retention. A schedule starts it with the names of its activities (activities/main.ts);
 * see docs/operations.md.
 */
export async function sweep(names: readonly string[]): Promise<void> {
  const results = await Promise.allSettled(names.map((name) => activities[name]?.()));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
