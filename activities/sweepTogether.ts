import { ApplicationFailure } from '@temporalio/activity';
import type { Logger } from '../telemetry/logger.ts';
import { keepAlive } from './keepAlive.ts';

/**
 * Makes the one activity that runs all sweeps beside each other: an activity for each costs Temporal and the worker many
 * times what the sweeps themselves do. Settles when all have ended, with what each has done; rejects with the names of
 * those that have failed.
 */
export function createSweepTogether({ logger }: { logger: Logger }, sweeps: Record<string, () => Promise<unknown>>) {
  return async function sweepTogether(): Promise<Record<string, unknown>> {
    using _heartbeat = keepAlive();
    const run = async ([name, sweep]: [string, () => Promise<unknown>]) => {
      try {
        return [name, await sweep()] as const;
      } catch (error) {
        logger.warn({ err: error, sweep: name }, 'A sweep has failed; the next one tries again.');
        throw error;
      }
    };
    // None is left behind by the failure of another.
    const results = await Promise.allSettled(Object.entries(sweeps).map(run));
    const failed = Object.keys(sweeps).filter((_, at) => results[at]?.status === 'rejected');
    // The next sweep comes soon: it would be the others' work that is done again.
    if (failed.length > 0) throw ApplicationFailure.nonRetryable(`Failed: ${failed.join(', ')}`, 'SweepsFailed');
    return Object.fromEntries(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])));
  };
}
