import { z } from 'zod';
import { redisAddress } from './kinds.ts';

export const redisSettings = z.object({
  ATRIUM_REDIS_URL: redisAddress.optional(),
});

/** Redis, through which processes tell each other what they have committed. */
export function redisConfig(env: z.infer<typeof redisSettings>) {
  return Object.freeze({
    /** Undefined means that processes ask the database instead. */
    url: env.ATRIUM_REDIS_URL,
  });
}
