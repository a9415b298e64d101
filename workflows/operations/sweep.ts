import { proxyActivities } from '@temporalio/workflow';
import { patiently } from '../retries.ts';

type Limit = '10 minutes' | '6 hours';

// The next sweep comes soon and picks up what fails here, so attempts are few.
const activitiesWithin = (limit: Limit) =>
  proxyActivities<Record<string, () => Promise<unknown>>>({
    startToCloseTimeout: limit,
    // A sweep whose worker was killed holds up the next ones, so it times out soon.
    heartbeatTimeout: '10 seconds',
    retry: { ...patiently, maximumAttempts: 3 },
  });

/**
 * Closes the gaps that no single process can: intents whose workflow was never started, rows whose workflow has
 * vanished, and rows past their retention. A schedule starts it with the names of its activities (activities/main.ts),
 * and how long each may take; see docs/operations.md.
 */
export async function sweep(names: readonly string[], limit: Limit): Promise<void> {
  const activities = activitiesWithin(limit);
  const results = await Promise.allSettled(names.map((name) => activities[name]?.()));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
