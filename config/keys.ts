import { z } from 'zod';
import { list, webAddress } from './kinds.ts';

const masterKeyPattern = /^[A-Za-z0-9+/]{43}=$/;

export const keysSettings = z.object({
  ATRIUM_MASTER_KEY: z
    .string()
    .regex(masterKeyPattern, '32 bytes in base64 (make one with: openssl rand -base64 32)')
    .optional(),
  ATRIUM_MASTER_KEY_OTHERS: list
    .refine(
      (keys) => keys.every((key) => masterKeyPattern.test(key)),
      'keys of 32 bytes in base64, separated by commas',
    )
    .default([]),
  ATRIUM_KMS_KEY_ID: z.string().min(1).max(240).optional(),
  ATRIUM_KMS_REGION: z.string().min(1).optional(),
  ATRIUM_KMS_ENDPOINT: webAddress.optional(),
});

/** The keys that seal the installation’s secrets. */
export function keysConfig(env: z.infer<typeof keysSettings>) {
  return Object.freeze({
    /** 32 bytes in base64. Undefined means the file `master.key` in the data directory. */
    masterKey: env.ATRIUM_MASTER_KEY,
    /** Further master keys, which only unseal. */
    otherMasterKeys: env.ATRIUM_MASTER_KEY_OTHERS,
    /** AWS KMS instead of a master key of our own, if `keyId` is set. */
    kms: Object.freeze({
      keyId: env.ATRIUM_KMS_KEY_ID,
      region: env.ATRIUM_KMS_REGION,
      endpoint: env.ATRIUM_KMS_ENDPOINT,
    }),
  });
}
