import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

// The next sweep comes soon: what fails here for long is the next one's work, so tries are few.
const {
  sweepTurns,
  sweepOperations,
  purgeOldTurnLogs,
  purgeIdempotencyKeys,
  sweepHolds,
  sweepGrants,
  sweepPaymentEvents,
  sweepBalances,
  purgeExpiredSecrets,
  purgeIdentity,
} = proxyActivities<Activities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumAttempts: 3 },
});

/**
 * Closes the gaps that no single process can: intents whose workflow was never started, rows whose workflow has vanished, and what
 * is older than its keeping. A schedule starts it; see docs/operations.md.
 */
export async function sweep(): Promise<void> {
  const results = await Promise.allSettled([
    sweepTurns(),
    sweepOperations(),
    purgeOldTurnLogs(),
    purgeIdempotencyKeys(),
    sweepHolds(),
    sweepGrants(),
    sweepPaymentEvents(),
    sweepBalances(),
    purgeExpiredSecrets(),
    purgeIdentity(),
  ]);
  const failure = results.find((result) => result.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
