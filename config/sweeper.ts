import { z } from 'zod';
import { integer } from './kinds.ts';

export const sweeperSettings = z.object({
  ATRIUM_SWEEP_INTERVAL_SECONDS: integer(1, 3_600).default(30),
  ATRIUM_SWEEP_GRACE_SECONDS: integer(1, 3_600).default(5),
});

/** The sweeper. */
export function sweeperConfig(env: z.infer<typeof sweeperSettings>) {
  return Object.freeze({
    intervalSeconds: env.ATRIUM_SWEEP_INTERVAL_SECONDS,
    /** How old a row must be before the sweeper looks for its workflow. */
    graceSeconds: env.ATRIUM_SWEEP_GRACE_SECONDS,
  });
}
