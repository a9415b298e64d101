import { z } from 'zod';
import { integer } from './kinds.ts';

const dayMs = 86_400_000;

export const appSettings = z.object({
  ATRIUM_APP_DELIVERIES_PER_MINUTE: integer(0, 1_000_000).default(600),
  ATRIUM_APP_DELIVERY_RETENTION_DAYS: integer(1, 3_650).default(30),
  ATRIUM_APP_SCHEDULE_MIN_INTERVAL_MINUTES: integer(1, 1_440).default(5),
  ATRIUM_APP_SCHEDULE_CATCH_UP_MINUTES: integer(1, 10_080).default(360),
});

/** What starts apps by itself. */
export function appsConfig(env: z.infer<typeof appSettings>) {
  return Object.freeze({
    /** Of one app, in each process of the API; 0 is no limit. */
    deliveriesPerMinute: env.ATRIUM_APP_DELIVERIES_PER_MINUTE,
    /** How long the body, the headers and the query of a delivery are kept. */
    deliveryRetentionMs: env.ATRIUM_APP_DELIVERY_RETENTION_DAYS * dayMs,
    /** The shortest time between two ticks of a schedule. */
    minIntervalMs: env.ATRIUM_APP_SCHEDULE_MIN_INTERVAL_MINUTES * 60_000,
    /** How late a tick may still run, when nothing ran at its time. */
    catchUpMs: env.ATRIUM_APP_SCHEDULE_CATCH_UP_MINUTES * 60_000,
  });
}
