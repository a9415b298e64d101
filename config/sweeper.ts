import { z } from 'zod';
import { integer } from './kinds.ts';

export const sweeperSettings = z.object({
  ATRIUM_SWEEP_INTERVAL_SECONDS: integer(1, 3_600).default(30),
  ATRIUM_SWEEP_GRACE_SECONDS: integer(1, 3_600).default(5),
  ATRIUM_SWEEP_BUDGET_SECONDS: integer(1, 300).default(20),
  ATRIUM_RECORD_RETENTION_DAYS: integer(30, 3_650).default(90),
});

/** The sweeper. */
export function sweeperConfig(env: z.infer<typeof sweeperSettings>) {
  return Object.freeze({
    intervalSeconds: env.ATRIUM_SWEEP_INTERVAL_SECONDS,
    /** How old a row must be before the sweeper looks for its workflow. */
    graceSeconds: env.ATRIUM_SWEEP_GRACE_SECONDS,
    /** Time limit of each sweep in one round. The next round continues. */
    budgetMs: env.ATRIUM_SWEEP_BUDGET_SECONDS * 1_000,
    /** How long records of finished work are kept: turns' working data, operations, holds. */
    recordRetentionMs: env.ATRIUM_RECORD_RETENTION_DAYS * 86_400_000,
  });
}
