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

/** The databases of spaces, on a server of their own. */
export function databasesConfig(env: z.infer<typeof databasesSettings>) {
  return Object.freeze({
    /** The account that creates databases and accounts on that server. Without it there are no databases. */
    url: env.ATRIUM_TENANT_DATABASE_URL,
    /** The server's admin port. It lets Atrium in when tenants have taken every connection. */
    adminPort: env.ATRIUM_TENANT_DATABASE_ADMIN_PORT,
    /** The server's data folder if it is on this machine. Its disk is then watched and its CPU shared out. */
    folder: env.ATRIUM_TENANT_DATABASE_FOLDER,
    maxPerSpace: env.ATRIUM_DATABASES_PER_SPACE,
    /** Connections of one account at once. */
    maxConnections: env.ATRIUM_DATABASE_CONNECTIONS,
    /** Connections of a space's computers at once, counted by each host's relay. */
    maxSpaceConnections: env.ATRIUM_DATABASE_SPACE_CONNECTIONS,
    /** A database larger than this on disk is full: it takes no more writes. */
    maxBytes: env.ATRIUM_DATABASE_SIZE_MB * 1_048_576,
    /** A database with more tables or partitions is full too: each is a file. */
    maxTables: env.ATRIUM_DATABASE_TABLES,
    /** All databases are full when the server's disk has less free. */
    minFreeBytes: env.ATRIUM_DATABASE_MIN_FREE_MB * 1_048_576,
    /** Time limit of a statement. */
    queryMs: env.ATRIUM_DATABASE_QUERY_SECONDS * 1_000,
    /** How long a deleted database can be restored. */
    keptMs: env.ATRIUM_DATABASE_KEPT_DAYS * 86_400_000,
    /** Time between the starts of two backups. 0 means no automatic backups. */
    backupMs: env.ATRIUM_DATABASE_BACKUP_HOURS * 3_600_000,
    backupsKept: env.ATRIUM_DATABASE_BACKUPS_KEPT,
    /** How long the previous password stays valid beside a new one. */
    rotationMs: env.ATRIUM_DATABASE_ROTATION_HOURS * 3_600_000,
  });
}
