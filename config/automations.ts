import { z } from 'zod';
import { integer } from './kinds.ts';

export const automationSettings = z.object({
  ATRIUM_AUTOMATIONS_PER_SPACE: integer(1, 10_000).default(100),
  ATRIUM_AUTOMATION_MIN_INTERVAL_MINUTES: integer(1, 1_440).default(5),
  ATRIUM_AUTOMATION_CATCH_UP_MINUTES: integer(1, 10_080).default(360),
  ATRIUM_AUTOMATION_RUNS_PER_DAY: integer(1, 100_000).default(500),
});

/** Chat turns that start by themselves. */
export function automationsConfig(env: z.infer<typeof automationSettings>) {
  return Object.freeze({
    maxPerSpace: env.ATRIUM_AUTOMATIONS_PER_SPACE,
    /** The shortest time between two ticks of a schedule. */
    minIntervalMs: env.ATRIUM_AUTOMATION_MIN_INTERVAL_MINUTES * 60_000,
    /** How late a tick may still run if nothing ran at its time. */
    catchUpMs: env.ATRIUM_AUTOMATION_CATCH_UP_MINUTES * 60_000,
    /** Runs of one automation in any 24 hours, whatever starts them. */
    maxRunsPerDay: env.ATRIUM_AUTOMATION_RUNS_PER_DAY,
  });
}
