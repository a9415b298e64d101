import type { Activities } from '../../../activities/index.ts';

/**
 * The activities that every sweep runs; an area adds its own here. The schedule hands them to the workflow as its argument, so that a sweep
 * that is running, or saved, goes on with those that it was started with.
 */
export const sweeps = [
  'sweepTurns',
  'sweepToolAnswers',
  'sweepOperations',
  'sweepMails',
  'purgeOldTurnLogs',
  'purgeIdempotencyKeys',
  'purgeEgressLog',
  'sweepHolds',
  'sweepGrants',
  'sweepPaymentEvents',
  'sweepBalances',
  'purgeExpiredSecrets',
  'purgeIdentity',
  'sweepDrive',
] as const satisfies readonly (keyof Activities)[];
