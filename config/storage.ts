import { z } from 'zod';
import { integer, webAddress } from './kinds.ts';

export const storageSettings = z.object({
  ATRIUM_S3_ENDPOINT: webAddress.optional(),
  ATRIUM_S3_REGION: z.string().min(1).default('us-east-1'),
  ATRIUM_S3_BUCKET: z.string().min(3).max(63).default('atrium'),
  ATRIUM_S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  ATRIUM_S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  ATRIUM_S3_PUBLIC_ENDPOINT: webAddress.optional(),
  ATRIUM_S3_TIMEOUT_SECONDS: integer(1, 600).default(10),
});

/** The object store. */
export function storageConfig(env: z.infer<typeof storageSettings>) {
  return Object.freeze({
    /** Undefined means AWS itself. */
    endpoint: env.ATRIUM_S3_ENDPOINT,
    region: env.ATRIUM_S3_REGION,
    bucket: env.ATRIUM_S3_BUCKET,
    accessKeyId: env.ATRIUM_S3_ACCESS_KEY_ID,
    secretAccessKey: env.ATRIUM_S3_SECRET_ACCESS_KEY,
    /** The store's address in links for clients. Undefined means `endpoint`. */
    publicEndpoint: env.ATRIUM_S3_PUBLIC_ENDPOINT,
    /** How long the store may send and accept nothing before a request is given up. */
    silenceMs: env.ATRIUM_S3_TIMEOUT_SECONDS * 1_000,
  });
}
