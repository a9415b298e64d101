import type { Environment } from '../../config/index.ts';

/** The default settings of a test's Atrium: its models' provider is the fake, and its sweeper is in a hurry. */
export function productSettings(providerUrl: string): Environment {
  return {
    ATRIUM_COMPATIBLE_BASE_URL: providerUrl,
    ATRIUM_COMPATIBLE_MODELS: 'fake-1',
    ATRIUM_DEMO_MODEL: 'true',
    ATRIUM_TITLE_MODEL: 'off',
    ATRIUM_SWEEP_INTERVAL_SECONDS: '1',
    ATRIUM_SWEEP_GRACE_SECONDS: '2',
  };
}
