import { z } from 'zod';
import { integer } from './kinds.ts';

const dayMs = 86_400_000;

export const appSettings = z.object({
  ATRIUM_APP_DELIVERIES_PER_MINUTE: integer(0, 1_000_000).default(600),
  ATRIUM_APP_DELIVERY_RETENTION_DAYS: integer(1, 3_650).default(30),
  ATRIUM_APP_DELIVERIES_MIB: integer(2, 1_048_576).default(1_024),
  ATRIUM_APP_RUNS_PER_SPACE: integer(1, 10_000).default(100),
  ATRIUM_APP_SCHEDULE_MIN_INTERVAL_MINUTES: integer(1, 1_440).default(5),
  ATRIUM_APP_SCHEDULE_CATCH_UP_MINUTES: integer(1, 10_080).default(360),
});

/** Limits of apps and of their triggers. */
export function appsConfig(env: z.infer<typeof appSettings>) {
  return Object.freeze({
    /** Deliveries per minute to one app, in each API process. 0 means no limit. */
    deliveriesPerMinute: env.ATRIUM_APP_DELIVERIES_PER_MINUTE,
    /** How long a delivery's body, headers and query are kept. */
    deliveryRetentionMs: env.ATRIUM_APP_DELIVERY_RETENTION_DAYS * dayMs,
    /** How many delivered bytes a space keeps. The oldest are removed first. */
    deliveredBytesPerSpace: env.ATRIUM_APP_DELIVERIES_MIB * 1_048_576,
    /** How many runs of a space's apps may be active at once. Others wait. */
    runsPerSpace: env.ATRIUM_APP_RUNS_PER_SPACE,
    /** The shortest time between two ticks of a schedule. */
    minIntervalMs: env.ATRIUM_APP_SCHEDULE_MIN_INTERVAL_MINUTES * 60_000,
    /** How late a tick may still run if nothing ran at its time. */
    catchUpMs: env.ATRIUM_APP_SCHEDULE_CATCH_UP_MINUTES * 60_000,
  });
}
