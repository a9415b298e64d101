import { proxyActivities } from '@temporalio/workflow';

// The next sweep comes soon: what fails here for long is the next one's work, so tries are few.
const activities = proxyActivities<Record<string, () => Promise<unknown>>>({
  startToCloseTimeout: '10 minutes',
  // A sweep that a killed worker was at holds up the next ones: it is given up soon.
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumAttempts: 3 },
});

/**
 * Closes the gaps that no single process can: intents whose workflow was never started, rows whose workflow has
 * vanished, and what is older than its keeping. A schedule starts it with the names of its activities
 * (activities/main.ts); see docs/operations.md.
 */
export async function sweep(names: readonly string[]): Promise<void> {
  const results = await Promise.allSettled(names.map((name) => activities[name]?.()));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
