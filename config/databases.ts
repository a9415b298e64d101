import { z } from 'zod';
import { integer, serverOfDatabases } from './kinds.ts';

export const databasesSettings = z.object({
  ATRIUM_TENANT_DATABASE_URL: serverOfDatabases.optional(),
  ATRIUM_TENANT_DATABASE_ADMIN_PORT: integer(1, 65_535).optional(),
  ATRIUM_TENANT_DATABASE_FOLDER: z.string().optional(),
  ATRIUM_DATABASES_PER_SPACE: integer(1, 1_000).default(10),
  ATRIUM_DATABASE_CONNECTIONS: integer(1, 1_000).default(20),
  ATRIUM_DATABASE_SPACE_CONNECTIONS: integer(1, 10_000).default(60),
  ATRIUM_DATABASE_SIZE_MB: integer(1, 1_000_000).default(1_024),
  ATRIUM_DATABASE_TABLES: integer(1, 100_000).default(2_000),
  ATRIUM_DATABASE_MIN_FREE_MB: integer(0, 1_000_000).default(1_024),
  ATRIUM_DATABASE_QUERY_SECONDS: integer(1, 86_400).default(60),
  ATRIUM_DATABASE_KEPT_DAYS: integer(1, 365).default(7),
  ATRIUM_DATABASE_BACKUP_HOURS: integer(0, 8_760).default(24),
  ATRIUM_DATABASE_BACKUPS_KEPT: integer(1, 1_000).default(7),
  ATRIUM_DATABASE_ROTATION_HOURS: integer(1, 720).default(24),
});

/** The databases of spaces, on a server that is only for them. */
export function databasesConfig(env: z.infer<typeof databasesSettings>) {
  return Object.freeze({
    /** The account that makes databases and accounts there; without it there are none. */
    url: env.ATRIUM_TENANT_DATABASE_URL,
    /** The server's port for administrators, which lets Atrium in when tenants have taken every connection. */
    adminPort: env.ATRIUM_TENANT_DATABASE_ADMIN_PORT,
    /** Where the server has its files, if that is on this machine: then its disk is watched, and its CPU shared out. */
    folder: env.ATRIUM_TENANT_DATABASE_FOLDER,
    maxPerSpace: env.ATRIUM_DATABASES_PER_SPACE,
    /** Of one account at once. */
    maxConnections: env.ATRIUM_DATABASE_CONNECTIONS,
    /** Of the computers of a space at once, by the relay of each host. */
    maxSpaceConnections: env.ATRIUM_DATABASE_SPACE_CONNECTIONS,
    /** What is larger, on the disk, is full: nothing more is written to it. */
    maxBytes: env.ATRIUM_DATABASE_SIZE_MB * 1_048_576,
    /** So is what has more tables, or partitions: each is a file. */
    maxTables: env.ATRIUM_DATABASE_TABLES,
    /** With less free on the server's disk, all of them are. */
    minFreeBytes: env.ATRIUM_DATABASE_MIN_FREE_MB * 1_048_576,
    /** What a statement may take. */
    queryMs: env.ATRIUM_DATABASE_QUERY_SECONDS * 1_000,
    /** How long a deleted one can be restored. */
    keptMs: env.ATRIUM_DATABASE_KEPT_DAYS * 86_400_000,
    /** How long after one backup the next one begins; 0 for none by itself. */
    backupMs: env.ATRIUM_DATABASE_BACKUP_HOURS * 3_600_000,
    backupsKept: env.ATRIUM_DATABASE_BACKUPS_KEPT,
    /** How long the password before holds beside a new one. */
    rotationMs: env.ATRIUM_DATABASE_ROTATION_HOURS * 3_600_000,
  });
}
