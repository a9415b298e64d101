import { setTimeout as delay } from 'node:timers/promises';
import { createMetering } from '../../activities/billing/metering.ts';
import { AttachmentReader } from '../../activities/chat/context/attachmentReader.ts';
import { HeadStarts } from '../../activities/chat/headStarts.ts';
import { StopWatch } from '../../activities/chat/stopWatch.ts';
import type { ActivityDeps } from '../../activities/deps.ts';
import { createTools } from '../../activities/tools/index.ts';
import type { ReadinessCheck } from '../../api/frame/deps.ts';
import { type RunningApi, startApi } from '../../api/frame/server.ts';
import type { Config } from '../../config/index.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { createCatalogue } from '../../integrations/llm/catalogue.ts';
import { createModelRunner } from '../../integrations/llm/modelRunner.ts';
import { createMailer } from '../../integrations/mail/smtp.ts';
import { createPayments } from '../../integrations/payments/index.ts';
import { createPushFetch } from '../../integrations/push/pushFetch.ts';
import { createPushSender } from '../../integrations/push/pushSender.ts';
import { DocumentReaders } from '../../integrations/readers/documentReaders.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { createDevelopmentPayments } from '../../models/billing/developmentPayments.ts';
import { openDatabase } from '../../models/database.ts';
import { createEgressRules } from '../../models/egress/egressRules.ts';
import { createIdentity, openEnvelope } from '../../models/identity/index.ts';
import { createMcpServers } from '../../models/mcp/mcpServers.ts';
import { createPushStore } from '../../models/push/index.ts';
import { createSecretStore } from '../../models/secrets/index.ts';
import { TurnFeed } from '../../models/turnLog/feed.ts';
import { TurnLog } from '../../models/turnLog/turnLog.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/client.ts';
import { connectTemporal } from '../../temporal/connection.ts';
import { type RunningWorker, startWorker } from '../../temporal/worker.ts';

/** Which parts of the product this process runs. */
export type Role = 'api' | 'worker' | 'both';

const sweeperRetryMs = 2_000;

/** Everything a process of Atrium is made of, wired once. What `api` and `worker` share is one object in a process that is both. */
export async function createRuntime(config: Config, logger: Logger, role: Role) {
  const database = openDatabase(config);
  const temporal = await connectTemporal(config, logger);
  const headStarts = new HeadStarts({ logger });
  const launcher = createLauncher({
    client: temporal.client,
    config,
    sharesWorkersConnection: role === 'both',
    headStart: (turn) => headStarts.begin(turn),
  });
  const feed = new TurnFeed({ database, logger, remoteWriters: role === 'api' });
  const turnLog = new TurnLog({ database, onCommit: feed.publish });
  feed.attach(turnLog);
  const catalogue = createCatalogue(config.llm);
  const payments = createPayments(config, createDevelopmentPayments(database));
  const storage = new ObjectStore(config.storage);
  const envelope = await openEnvelope(database, config);
  const identity = createIdentity(database, envelope, config);
  const secrets = createSecretStore(database, envelope);
  const egressRules = createEgressRules(database);
  const mcpServers = createMcpServers(database, envelope);
  const egressGuard = new EgressGuard({ allowInternal: config.egress.allowInternal });
  const push = createPushStore(database, envelope);
  const documents = new DocumentReaders();
  const checks: ReadinessCheck[] = [
    {
      name: 'temporal',
      async check() {
        await temporal.client.workflowService.describeNamespace({ namespace: config.temporal.namespace });
      },
    },
    { name: 'storage', optional: true, check: () => storage.check() },
  ];

  return {
    config,
    database,
    launcher,
    logger,

    startApi: (): Promise<RunningApi> =>
      startApi({
        config,
        database,
        logger,
        identity,
        secrets,
        catalogue,
        storage,
        egressGuard,
        egressRules,
        mcpServers,
        launcher,
        payments,
        push,
        turnLog,
        feed,
        checks,
      }),

    startWorker(options: { shutdownGraceMs: number }): Promise<RunningWorker> {
      const deps: ActivityDeps = {
        config,
        database,
        turnLog,
        catalogue,
        storage,
        logger,
        modelRunner: createModelRunner({ config, catalogue }),
        metering: createMetering({ database, config, catalogue }),
        payments,
        stopWatch: new StopWatch({ database, logger }),
        headStarts,
        tools: createTools({
          config,
          database,
          storage,
          identity,
          logger,
          mcpServers,
          egressRules,
          egressGuard,
          documents,
        }),
        attachments: new AttachmentReader(storage, documents),
        secrets,
        egressRules,
        mails: identity.mails,
        mailer: config.signIn.mail && createMailer(config.signIn.mail),
        members: identity.members,
        arrivals: identity.arrivals,
        push,
        pushSender: createPushSender({
          keys: push.keys,
          subject: config.push.subject,
          fetch: createPushFetch(egressGuard),
          logger,
        }),
        workflows: launcher,
      };
      return startWorker({ temporal, deps, ...options });
    },

    /** Makes the schedules of the sweeper and the reconciliation; tries again for as long as Temporal is not there yet. */
    async ensureSweeper(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          await launcher.ensureReconciliation();
          return await launcher.ensureSweeper();
        } catch (error) {
          logger.warn({ err: error }, 'The sweeper’s schedule could not be made; trying again.');
          await delay(sweeperRetryMs, undefined, { signal }).catch(() => undefined);
        }
      }
    },

    async close(): Promise<void> {
      documents.close();
      feed.close();
      await turnLog.close();
      storage.close();
      await temporal.close();
      await database.close();
    },
  };
}

export type AtriumRuntime = Awaited<ReturnType<typeof createRuntime>>;
