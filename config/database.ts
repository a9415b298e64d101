import { z } from 'zod';
import { requireSetting } from './errors.ts';
import { databaseAddress, integer } from './kinds.ts';

export const databaseSettings = z.object({
  ATRIUM_DATABASE_URL: databaseAddress.optional(),
  ATRIUM_DATABASE_MIGRATION_URL: databaseAddress.optional(),
  ATRIUM_DATABASE_POOL_SIZE: integer(2, 500).default(20),
  ATRIUM_DATABASE_TIMEOUT_SECONDS: integer(5, 600).default(15),
});

/** MySQL. */
export function databaseConfig(env: z.infer<typeof databaseSettings>) {
  return Object.freeze({
    url: requireSetting('ATRIUM_DATABASE_URL', env.ATRIUM_DATABASE_URL),
    poolSize: env.ATRIUM_DATABASE_POOL_SIZE,
    /** How long the server may be silent on a statement before its connection is dropped. */
    silenceMs: env.ATRIUM_DATABASE_TIMEOUT_SECONDS * 1_000,
  });
}

/** For statements that change tables. */
export function migrationConfig(env: z.infer<typeof databaseSettings>) {
  return Object.freeze({
    /** The same database with an account that may change tables, if the running Atrium's may not. */
    databaseUrl: env.ATRIUM_DATABASE_MIGRATION_URL ?? env.ATRIUM_DATABASE_URL,
  });
}
