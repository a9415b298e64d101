import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { sweepNames } from '../../activities/main.ts';
import type { Config } from '../../config/index.ts';
import { checkRedis as askRedis } from '../../integrations/redis/checkRedis.ts';
import { mostConnections, openDatabase } from '../../models/database/database.ts';
import { select } from '../../models/database/sql.ts';
import { triggerAdvice, unguardedChanges } from '../../models/migrations/ledgerTriggers.ts';
import { assertKnownSchema, pendingMigrations } from '../../models/migrations/migrate.ts';
import { sweepAges } from '../../models/sweeping/sweepRounds.ts';
import { missingSearchAttributes } from '../../temporal/searchAttributes.ts';
import { off, ok, wrong } from './check.ts';
import { commandLine } from './commandLine.ts';
import { withTemporal } from './temporal.ts';

/** A sweep is late when it has not finished within this many rounds. */
const lateRounds = 20;
/** A row can be as large as this. 64 leaves room for larger statements. */
const leastPacketMiB = 16;
/** Reserved for an operator, backups and a migration. */
const spareConnections = 10;

/**
 * Whether the database answers, takes large batches, allows enough connections, has the schema of this version, and
 * guards the ledger.
 */
export async function checkDatabase(config: Config) {
  await using database = openDatabase(config);
  const sql = 'SELECT VERSION() AS version, @@max_allowed_packet AS packet, @@max_connections AS connections';
  const rows = await select<{ version: string; packet: number; connections: number }>(database.pool, sql);
  const { version, packet, connections } = rows[0] ?? {
    version: '?',
    packet: 0,
    connections: 0,
  };
  if (packet < leastPacketMiB * 1024 * 1024) {
    return wrong(
      `${version}; set its max_allowed_packet to 64M (it is ${packet} bytes, and at least ${leastPacketMiB}M are needed)`,
    );
  }
  // The pools of one process, and the spare connections.
  const needed = mostConnections(config.database.poolSize) + spareConnections;
  if (connections < needed) {
    return wrong(
      `${version}; one process may open ${needed} connections, and max_connections is ${connections}: raise it, or lower ATRIUM_DATABASE_POOL_SIZE`,
    );
  }
  await assertKnownSchema(database);
  const pending = await pendingMigrations(database);
  if (pending.length > 0) {
    return wrong(`${version}; run "${commandLine} migrate": the database lacks ${pending.join(', ')}`);
  }
  const unguarded = await unguardedChanges(database);
  if (unguarded.length > 0)
    return wrong(`${version}; the ledger is not kept from ${unguarded.join(', ')}: ${triggerAdvice}`);
  const processes = Math.floor((connections - spareConnections) / mostConnections(config.database.poolSize));
  return ok(`${version}, schema up to date; max_connections of ${connections} are enough for ${processes} processes`);
}

/** Whether each sweep finishes in time. Off where no worker runs. */
export async function checkSweeps(config: Config) {
  await using database = openDatabase(config);
  const ages = [...(await sweepAges(database, sweepNames))];
  const { intervalSeconds, budgetMs } = config.sweeper;
  const mostSeconds = lateRounds * (intervalSeconds + budgetMs / 1_000);
  const late = ages.filter(([, age]) => age > mostSeconds);
  if (late.length === ages.length) return off('no worker has run a sweep recently');
  if (late.length === 0) return ok(`all ${ages.length} have finished recently`);
  const told = late.map(([name, age]) => `${name} (${Math.round(age / 60)} min)`).join(', ');
  return wrong(`behind: ${told}. The log of the workers says whether they fail; a backlog goes on round by round.`);
}

/** Whether Temporal answers, has the namespace, and knows the search attributes. */
export async function checkTemporal(config: Config) {
  return withTemporal(config, async (connection) => {
    const { namespace, address } = config.temporal;
    await connection.workflowService.describeNamespace({ namespace });
    const missing = await missingSearchAttributes(connection, namespace);
    if (missing.length === 0) return ok(`${address}, namespace ${namespace}`);
    return wrong(`namespace ${namespace} lacks search attributes: make ${missing.join(', ')}, each of type Keyword`);
  });
}

/** Whether processes can tell each other of commits over Redis, where it is set. Omits the password of its address. */
export async function checkRedis({ redis, installation }: Pick<Config, 'redis' | 'installation'>) {
  if (redis.url === undefined) return off("not set: processes learn of each other's commits from the database");
  await askRedis({ url: redis.url, installation });
  const { protocol, host, password } = new URL(redis.url);
  return ok(`${protocol}//${host}${password === '' ? ', without a password' : ''}`);
}

/**
 * Whether the bucket exists, and whether the keys may upload in parts and list unfinished uploads. Without the list,
 * abandoned uploads would stay forever.
 */
export async function checkStorage({ storage }: Config) {
  const { endpoint, region, bucket, accessKeyId, secretAccessKey } = storage;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: endpoint !== undefined,
    maxAttempts: 1,
    ...(accessKeyId !== undefined && secretAccessKey !== undefined
      ? { credentials: { accessKeyId, secretAccessKey } }
      : {}),
  });
  try {
    // Unlike a question about the bucket, this gets an answer with a reason, for example that the clocks differ.
    const target = { Bucket: bucket, Key: `atrium-doctor-${randomUUID()}` };
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: target.Key }));
    await client.send(new AbortMultipartUploadCommand({ ...target, UploadId }));
    if (Uploads.length === 0)
      return wrong(`bucket ${bucket} does not list uploads in parts: abandoned ones would stay`);
    return ok(`${endpoint ?? 'AWS'}, bucket ${bucket}`);
  } catch (error) {
    if ((error as { name?: string }).name === 'NoSuchBucket')
      return wrong(`there is no bucket ${bucket}: make it, or set ATRIUM_S3_BUCKET`);
    throw error;
  } finally {
    client.destroy();
  }
}
