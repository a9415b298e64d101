import type { Environment } from '../../config/index.ts';

/** The default settings of a test's Atrium. The fake provider serves its models. */
export function productSettings(providerUrl: string): Environment {
  return {
    ATRIUM_COMPATIBLE_BASE_URL: providerUrl,
    ATRIUM_COMPATIBLE_MODELS: 'fake-1',
    ATRIUM_DEMO_MODEL: 'true',
    ATRIUM_TITLE_MODEL: 'off',
  };
}

/**
 * For tests of sweeps. The sweeper runs every ten seconds, and every two seconds while a test waits (`hurry.ts`). Every
 * two seconds all the time would cost a fifth of a CPU as long as the Atrium runs.
 */
export const hurriedSweeper: Environment = { ATRIUM_SWEEP_INTERVAL_SECONDS: '10', ATRIUM_SWEEP_GRACE_SECONDS: '2' };
