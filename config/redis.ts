import { z } from 'zod';
import { redisAddress } from './kinds.ts';

export const redisSettings = z.object({
  ATRIUM_REDIS_URL: redisAddress.optional(),
});

/** Redis, by which processes tell each other of what they have committed. */
export function redisConfig(env: z.infer<typeof redisSettings>) {
  return Object.freeze({
    /** Absent means that the database is asked instead. */
    url: env.ATRIUM_REDIS_URL,
  });
}
