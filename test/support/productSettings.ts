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
 * For tests of what the sweeper does. It comes by itself every ten seconds, and every two while a test waits for
 * something (`hurry.ts`): a sweep every two seconds cost a fifth of a CPU for as long as the Atrium ran.
 */
export const hurriedSweeper: Environment = { ATRIUM_SWEEP_INTERVAL_SECONDS: '10', ATRIUM_SWEEP_GRACE_SECONDS: '2' };
