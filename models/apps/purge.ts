import type { AreaPurge } from '../database/areaPurge.ts';

export const appsPurge: AreaPurge = {
  ofSpace: [
    'app_schedules',
    'app_deliveries',
    'app_webhook_secrets',
    'app_run_attempts',
    'app_runs',
    'app_changes',
    'app_versions',
    'apps',
    // Last: a transaction that makes this row holds an app.
    'app_usage',
  ],
};
