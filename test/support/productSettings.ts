import type { Environment } from '../../config/index.ts';

/** The default settings of a test's Atrium: its models' provider is the fake. */
export function productSettings(providerUrl: string): Environment {
  return {
    ATRIUM_COMPATIBLE_BASE_URL: providerUrl,
    ATRIUM_COMPATIBLE_MODELS: 'fake-1',
    ATRIUM_DEMO_MODEL: 'true',
    ATRIUM_TITLE_MODEL: 'off',
  };
}

/**
 * For tests of what the sweeper sees to. For the others it comes as seldom as everywhere: one in a hurry costs CPU time
 * for as long as the Atrium runs, and mends what a test should see is lost.
 */
export const hurriedSweeper: Environment = { ATRIUM_SWEEP_INTERVAL_SECONDS: '2', ATRIUM_SWEEP_GRACE_SECONDS: '2' };
