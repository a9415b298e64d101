import { sweepNames } from '../../activities/main.ts';
import type { ReadinessCheck } from '../../api/frame/deps.ts';
import type { Config } from '../../config/index.ts';
import { createPayments } from '../../integrations/billing/index.ts';
import { createCatalogue } from '../../integrations/chat/catalogue.ts';
import { createEmbedder } from '../../integrations/chat/embeddings.ts';
import { faultOfHost } from '../../integrations/computers/host/disks/image.ts';
import { hostLayout } from '../../integrations/computers/host/layout.ts';
import { createTenantServer, type TenantServer } from '../../integrations/databases/tenantServer.ts';
import { createAuthority } from '../../integrations/egress/certificates.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { createGitHosting } from '../../integrations/gitHosting/index.ts';
import type { ProvenPerson } from '../../integrations/gitHosting/provider.ts';
import { DocumentReaders } from '../../integrations/readers/documentReaders.ts';
import { RedisNotices } from '../../integrations/redis/redisNotices.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { checkAppSchedule } from '../../models/apps/checkSchedule.ts';
import { createAppSecrets } from '../../models/apps/webhookSecrets.ts';
import { createAutomationSecrets } from '../../models/automations/webhookSecrets.ts';
import { createDevelopmentPayments } from '../../models/billing/developmentPayments.ts';
import { createSealedProfiles } from '../../models/browsers/sealedProfiles.ts';
import { TurnFeed } from '../../models/chat/turnLog/feed.ts';
import { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import { countUnendedTurns } from '../../models/chat/unendedTurns.ts';
import { createComputerSecrets } from '../../models/computers/computerSecrets.ts';
import { createComputers } from '../../models/computers/computers.ts';
import { createPortLinks } from '../../models/computers/portLinks.ts';
import { createSealedSaves } from '../../models/computers/sealedSaves.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';
import { createSpaceDatabases } from '../../models/databases/index.ts';
import { createContentFindings, type Damage } from '../../models/drive/findings.ts';
import { reserveOf } from '../../models/drive/objectReserve.ts';
import { createEgressAuthorities } from '../../models/egress/authorities.ts';
import { createEgressRules } from '../../models/egress/egressRules.ts';
import { createSealedLogs } from '../../models/environments/builds/sealedLogs.ts';
import { createGitConnections } from '../../models/git/connections.ts';
import { createGitCredentials } from '../../models/git/credentials.ts';
import { checkMasterKey, createIdentity, openEnvelope } from '../../models/identity/index.ts';
import { createMcpServers } from '../../models/mcp/mcpServers.ts';
import { assertKnownSchema } from '../../models/migrations/migrate.ts';
import { createPushStore } from '../../models/push/index.ts';
import { createSecretStore } from '../../models/secrets/index.ts';
import { sweepAges } from '../../models/sweeping/sweepRounds.ts';
import { createWebhookEndpoints } from '../../models/webhooks/endpoints.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createMeters } from '../../telemetry/meters.ts';
import { connectTemporal } from '../../temporal/connection.ts';

export interface ServiceOptions {
  config: Config;
  logger: Logger;
  /**
   * `readers`: whether this process reads turns. `remoteWriters`: whether other processes write them, so that their
   * logs must be watched.
   */
  readers: boolean;
  remoteWriters: boolean;
  /** An open database. `close` leaves it open. */
  database?: Database;
}

/** The services of both the API and the workers. A process that is both shares them. */
export async function createServices({ config, logger, readers, remoteWriters, database: given }: ServiceOptions) {
  const database = given ?? openDatabase(config);
  await assertKnownSchema(database);
  const temporal = await connectTemporal(config, logger);
  const notices = openNotices(config, logger, readers);
  // With Redis there are other processes.
  const feed = new TurnFeed({ database, logger, remoteWriters: remoteWriters || notices !== undefined, notices });
  const turnLog = new TurnLog({ database, onCommit: feed.publish });
  feed.attach(turnLog);
  const findings = createContentFindings(database);
  const storage = new ObjectStore(config.storage, { find: findings.find, note: noteContent });
  const { processorMs } = config.readers;
  const documents = new DocumentReaders(processorMs === undefined ? {} : { limits: { processorMs } });
  const envelope = await openEnvelope(database, config);
  const checks: ReadinessCheck[] = [
    {
      name: 'temporal',
      without:
        'Messages are accepted, and the model’s first answer is streamed. Tools, operations and automations wait until it is back.',
      async check() {
        await temporal.client.workflowService.describeNamespace({ namespace: config.temporal.namespace });
      },
    },
    { name: 'keys', fault: 'does not open what this database holds', check: () => checkMasterKey(envelope) },
    {
      name: 'storage',
      without: 'What needs the bytes of the drive is answered with 503. Everything else goes on.',
      check: () => storage.check(),
    },
    ...(config.computers.hosted
      ? [
          {
            name: 'computers',
            without: 'The computers of this machine cannot be used until their homes can be written again.',
            async check() {
              const fault = faultOfHost(hostLayout(config.computers.dir));
              if (fault !== undefined) throw new Error(fault);
            },
          },
        ]
      : []),
    ...(notices === undefined
      ? []
      : [
          {
            name: 'redis',
            without: 'Everything goes on: commits are read from the database.',
            check: () => notices.check(),
          },
        ]),
  ];
  const meters = createMeters();
  const states = 'Turns that have not ended, of the whole installation.';
  meters.gauge('turns', states, 'status', () => countUnendedTurns(database));
  const ages = 'Seconds since each sweep last came to its end, of the whole installation.';
  meters.gauge('sweep_age_seconds', ages, 'sweep', () => sweepAges(database, sweepNames));
  const contents = 'Stored objects that are not as they were stored, of the whole installation.';
  meters.gauge('damaged_contents', contents, 'finding', () => findings.counts());
  async function noteContent(objectKey: string, finding: Damage | null): Promise<void> {
    if ((await findings.note(objectKey, finding)) && finding !== null) {
      logger.error({ objectKey, finding }, 'A stored object is not as it was stored.');
    }
  }
  return {
    config,
    logger,
    meters,
    database,
    temporal,
    feed,
    turnLog,
    storage,
    checks,
    documents,
    identity: createIdentity(database, envelope, config),
    secrets: createSecretStore(database, envelope),
    computers: createComputers(database, envelope, config),
    portLinks: createPortLinks(database),
    push: createPushStore(database, envelope),
    mcpServers: createMcpServers(database, envelope),
    checkSchedule: (schedule: Parameters<typeof checkAppSchedule>[0]) =>
      checkAppSchedule(schedule, config.apps, new Date()),
    appSecrets: createAppSecrets(database, envelope),
    automationSecrets: createAutomationSecrets(database, envelope),
    webhookEndpoints: createWebhookEndpoints(database, envelope),
    gitCredentials: createGitCredentials(database, envelope),
    gitHosting: createGitHosting(config),
    gitConnections: createGitConnections<ProvenPerson>(database, envelope),
    spaceDatabases: createSpaceDatabases(database, envelope, config),
    tenantServer: openTenantServer(config),
    sealedProfiles: createSealedProfiles(envelope),
    sealedSaves: createSealedSaves(envelope),
    sealedLogs: createSealedLogs(envelope),
    computerSecrets: createComputerSecrets(database, envelope),
    egressRules: createEgressRules(database),
    egressAuthorities: createEgressAuthorities(database, envelope, createAuthority),
    egressGuard: new EgressGuard({ allowInternal: config.egress.allowInternal }),
    catalogue: createCatalogue(config.llm),
    embedder: createEmbedder(config.llm),
    payments: createPayments(config, createDevelopmentPayments(database)),

    async close(): Promise<void> {
      documents.close();
      feed.close();
      await turnLog.close();
      await notices?.close();
      storage.close();
      await temporal.close();
      await reserveOf(database)
        .empty()
        .catch(() => undefined);
      if (given === undefined) await database.close();
    },
  };
}

function openNotices({ redis, installation }: Config, logger: Logger, listens: boolean): RedisNotices | undefined {
  return redis.url === undefined ? undefined : new RedisNotices({ url: redis.url, installation, logger, listens });
}

/** The server for the databases of spaces, if one is configured. */
function openTenantServer({ databases: { url, ...rest } }: Config): TenantServer | undefined {
  return url === undefined ? undefined : createTenantServer({ url, adminPort: rest.adminPort }, rest);
}

export type Services = Awaited<ReturnType<typeof createServices>>;
