import { z } from 'zod';
import { integer } from './kinds.ts';

export const webhookSettings = z.object({
  ATRIUM_WEBHOOK_RETRY_SECONDS: z
    .string()
    .regex(/^\d{1,6}(,\d{1,6}){0,19}$/, 'must be up to 20 numbers of seconds, separated by commas')
    .default('5,300,1800,7200,18000,36000,21600'),
  ATRIUM_WEBHOOK_FAILING_DAYS: integer(1, 365).default(5),
  ATRIUM_WEBHOOK_DELIVERY_RETENTION_DAYS: integer(2, 365).default(30),
});

const dayMs = 86_400_000;

/** Webhooks to the endpoints of spaces. */
export function webhooksConfig(env: z.infer<typeof webhookSettings>) {
  return Object.freeze({
    /** Delays before the second attempt of a delivery, the third, and so on. */
    retryDelaysMs: env.ATRIUM_WEBHOOK_RETRY_SECONDS.split(',').map((seconds) => Number(seconds) * 1_000),
    /** An endpoint that accepts nothing for this long is disabled. */
    failingMs: env.ATRIUM_WEBHOOK_FAILING_DAYS * dayMs,
    /** An endpoint with more waiting deliveries is disabled. */
    mostWaiting: 10_000,
    deliveryRetentionMs: env.ATRIUM_WEBHOOK_DELIVERY_RETENTION_DAYS * dayMs,
  });
}
